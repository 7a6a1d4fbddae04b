// Selftest: runs the trials of a small built-in grid through the ordinary run loop, agents and ranks, and reads what the ranks
// report of them. For commands that test the machine instead of measuring it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/driver/observer.h"
#include "orchestrator/driver/strategies.h"
#include "orchestrator/driver/sweep_driver.h"
#include "schema/records.h"

namespace sweep::driver {

// Where and with what.
struct SelfTestRequest {
  LaunchRequest launch;
  std::string grid;  // a file whose launch section is used; empty: none
  std::string db;
};

// What all ranks of a trial reported: the largest of each distance, and every fault once.
struct SelfTestOutcome {
  Outcome outcome = Outcome::kCrash;
  std::string reason;  // of an outcome other than ok
  double loss = 0, gradient = 0, value = 0;
  std::string worst;
  bool bytes_exact = false;
  double bytes_off = 0;  // largest relative distance of a rank's peak from the dry run's
  std::vector<std::string> bytes, traffic, collectives;
  std::string hosts;
};
bool passed(const SelfTestOutcome&, const Tolerance&);
// Adds the answer of one more rank.
void add_rank(SelfTestOutcome&, const RankRecord&, bool first);

struct SelfTestReport {
  std::map<std::string, SelfTestOutcome> outcomes;  // by trial id; trials without an answer are absent
  std::string why;                                  // of a run that ended early
  std::vector<std::string>
      hosts;  // of the last allocation, by node, as its launcher names them; empty: it names none
};

// JSON of a grid file's launch section; of no file: {}.
Expected<std::string> launch_section_of(const std::string& grid);

// Everything is run anew, whatever the database knows.
Expected<SelfTestReport> run_selftests(const SelfTestRequest&, const std::string& sweep_name,
                                       const std::vector<Trial>&, const MakeObserver&);

}  // namespace sweep::driver
