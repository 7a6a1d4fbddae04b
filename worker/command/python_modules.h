// Python modules that travel inside the agent.
#pragma once
#include <string_view>

namespace sweep::command {

std::string_view report_module();  // python/sweep_trial.py, which trainers report with
std::string_view roles_module();   // roles.py, by which a rank stands for those of its pipeline stage

}  // namespace sweep::command
