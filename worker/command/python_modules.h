// Python modules that travel inside the agent.
#pragma once
#include <string_view>

namespace sweep::command {

std::string_view report_module();    // python/sweep_trial.py, which trainers report with
std::string_view one_rank_module();  // one_rank.py, by which one rank stands for a world

}  // namespace sweep::command
