// The conclusions of `sweep doctor` from facts: pure functions of what the companions and the machine
// answered.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/finding.h"
#include "orchestrator/run/run_sweep.h"
#include "schema/plan_entry.h"
#include "schema/records.h"

namespace sweep::driver {

using launch::Finding, launch::Health, launch::NodeWants, launch::ProbeAnswer;

// One finding for the driver, one per kind of GPU; "no GPU" is good news for CPU trials and says so.
std::vector<Finding> judge_gpus(const NodeFacts& node, const RankFacts& rank);

// Judges a node by its answer to `sweep-agent --probe`.
std::vector<Finding> judge_node(const ProbeAnswer&, const NodeWants&);

// Why the GPUs of a node, by its facts, are not the declared hardware, or fewer than the `needed`, and what
// to do; nullopt: they are, or the facts do not tell of GPUs (no NVML there): each rank then looks for itself.
std::optional<std::string> unfit_gpus(const NodeFacts& facts, const std::string& hardware,
                                      std::int64_t needed);

// Before the first trial of a node, a run compares the GPUs of the node with the hardware that the trials declare.
run::JudgeNode node_judge(const std::vector<PlanEntry>&);

// free_bytes of /dev/shm and of the database's folder.
Finding judge_space(const std::string& what, double free_bytes, double needed_bytes);

// The check of this machine by `sweep doctor`: its programs, GPUs, folders, and whether it can rehearse.
// db: where the user's database would lie. What is missing or broken is a finding.
std::vector<Finding> check_this_machine(const std::filesystem::path& db);

}  // namespace sweep::driver
