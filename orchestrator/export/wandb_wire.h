// How a run is spelled for W&B, shared by the online export and the offline file.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "orchestrator/export/tracker_run.h"

namespace sweep::exports {

// JSON as W&B's own client writes it: NaN, Infinity and -Infinity are bare words.
std::string wandb_number(double);
std::string wandb_object(const std::vector<std::pair<std::string, std::string>>& keys_with_json);

// Keys with their JSON text.
using WandbItems = std::vector<std::pair<std::string, std::string>>;
WandbItems wandb_config(const TrackerRun&);
WandbItems wandb_history(const HistoryPoint&);
// The final numbers, outcome and reason, and the last value of each history key, as the client keeps them.
WandbItems wandb_summary(const TrackerRun&);
std::vector<std::string> wandb_tags(const TrackerRun&);
int wandb_exit_code(const TrackerRun&);  // 0: W&B shows the run as finished; else as failed

inline constexpr const char* kWandbJobType = "trial";

// A sentence when W&B would not take such a name.
Expected<void> check_wandb_project(const std::string&);

}  // namespace sweep::exports
