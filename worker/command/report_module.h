// python/sweep_trial.py, which trainers report with: it travels inside the agent.
#pragma once
#include <string_view>

namespace sweep::command {

std::string_view report_module();

}  // namespace sweep::command
