// Selftest: runs the trials of a small built-in grid through the ordinary run loop, agents and ranks, and
// reads what the ranks report of them. For commands that test the machine instead of measuring it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "orchestrator/driver/built_in_run.h"
#include "orchestrator/driver/strategies.h"
#include "schema/records.h"

namespace sweep::driver {

// The reports of all ranks of a trial: the largest of each distance, and every fault once.
struct SelfTestOutcome {
  Outcome outcome = Outcome::kCrash;
  std::string reason;  // reason of an outcome other than ok
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
  std::map<std::string, SelfTestOutcome> outcomes;  // key: trial id; trials without an answer are missing
  std::string why;                                  // reason why the run ended early
  std::vector<std::string>
      hosts;  // hosts of the last allocation, by node, as its launcher names them; empty: it names none
};

// Everything is run anew, whatever the database knows.
Expected<SelfTestReport> run_selftests(const SelfTestRequest&, const std::string& sweep_name,
                                       const std::vector<Trial>&, const MakeObserver&);

}  // namespace sweep::driver
