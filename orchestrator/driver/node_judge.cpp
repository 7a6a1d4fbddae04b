#include "orchestrator/driver/node_judge.h"

#include <algorithm>
#include <map>

#include "orchestrator/driver/doctor_rules.h"

namespace sweep::driver {

run::JudgeNode node_judge(const std::vector<PlanEntry>& entries) {
  std::map<std::string, i64> declared;  // the most GPUs that a trial needs of a node, by hardware
  for (const PlanEntry& entry : entries) {
    if (!entry.admitted || entry.trial.hardware == "cpu") continue;
    i64& most = declared[entry.trial.hardware];
    const bool shares = entry.trial.backend == CommBackend::kGloo;  // its ranks may share a GPU
    most = std::max(most, shares ? 1 : entry.trial.gpus_per_node);
  }
  if (declared.empty()) return {};
  return [declared = std::move(declared)](const NodeRecord& node, const std::string& hardware,
                                          i64 gpus) -> std::optional<std::string> {
    for (const auto& [name, most] : declared) {
      if (!hardware.empty() && hardware != name) continue;
      if (auto why = unfit_gpus(node.facts, name, gpus > 0 ? std::min(gpus, most) : most)) return why;
    }
    return std::nullopt;
  };
}

}  // namespace sweep::driver
