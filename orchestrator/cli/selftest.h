// Proving: runs the trials of a small built-in grid through the ordinary run loop, agents and ranks, and reads what
// the ranks say of it. For commands that test the machine instead of measuring it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/cli/launchers.h"
#include "orchestrator/cli/strategies.h"
#include "schema/records.h"

namespace sweep::cli {

// Where and with what; `grid` is a file whose launch section is taken.
struct SelfTestRequest {
  LaunchRequest launch;
  std::string grid, db;
  bool quiet = false;
};
void add_selftest_options(CLI::App& command, SelfTestRequest&);

// What all ranks of a trial said: the largest of each distance, and every fault once.
struct Found {
  Outcome outcome = Outcome::kCrash;
  std::string reason;  // of an outcome other than ok
  double loss = 0, gradient = 0, value = 0;
  std::string worst;
  bool bytes_exact = false;
  double bytes_off = 0;  // largest relative distance of a rank's peak from the dry run's
  std::vector<std::string> bytes, traffic, collectives;
  std::string hosts;
};
bool passed(const Found&, const Tolerance&);

// By trial id; trials without an answer are absent. `why` is of a run that ended early.
struct Proved {
  std::map<std::string, Found> found;
  std::string why;
};
// JSON of a grid file's launch section; of no file: {}.
Expected<std::string> launch_section_of(const std::string& grid);

// Everything is run anew, whatever the database knows.
Expected<Proved> run_selftests(Io&, const SelfTestRequest&, const std::string& sweep_name,
                               const std::vector<Trial>& trials);

}  // namespace sweep::cli
