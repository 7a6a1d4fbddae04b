// GridEngineOptions: what `launch.gridengine` of a grid file and `gridengine` of a site profile ask of Grid
// Engine. The grid reader has checked the kinds of the values, and that a text has no quote, backslash or
// control character.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::launch {

struct GridEngineOptions {
  std::string queue, project;
  std::string parallel_environment;    // with pe_slots of it; empty: one slot without one
  i64 pe_slots = 1;                    // slots of Grid Engine that a job takes, all on one host
  std::vector<std::string> resources;  // of `qsub -l`, each: "gpu=4"
  std::vector<std::string> extra;      // further options of qsub, verbatim
  std::vector<std::string> prologue;   // lines of the script before the agent starts
  std::string screen;                  // as the agent's --screen
  std::optional<double> time_s;        // the longest that a job may be asked for
  std::optional<double> pending_s;     // the longest that a job may wait in the queue; absent: without limit
  double signal_s = 60;                // the agent ends its work so long before the time limit
  double idle_s = 300;                 // an agent without work and without word ends its job
  double poll_s = 30;                  // the longest between two queries while nothing changes
  double confirm_gpu_hours = 0;        // ask before a plan predicted above this; 0: never
  i64 max_nodes = 0;                   // hosts held at once; 0: max_allocations
  i64 max_allocations = 4;             // jobs at once
};

// Of the merged JSON of site profiles and grid.
Expected<GridEngineOptions> gridengine_options_from(const nlohmann::json& section);

}  // namespace sweep::launch
