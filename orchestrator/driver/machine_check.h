// The check of this machine by `sweep doctor`: its programs, GPUs, folders, and whether it can rehearse.
#pragma once
#include <filesystem>
#include <vector>

#include "orchestrator/driver/doctor_rules.h"

namespace sweep::driver {

// db: where the user's database would lie. What is missing or broken is a finding.
std::vector<Finding> check_this_machine(const std::filesystem::path& db);

}  // namespace sweep::driver
