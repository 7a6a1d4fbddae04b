#include "orchestrator/driver/cluster_check.h"

#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "orchestrator/launch/probe_answer.h"

namespace sweep::driver {

Expected<std::vector<Finding>> check_cluster(const ClusterCheckRequest& request, const BuiltInPlace& place,
                                             const MakeObserver& make_observer) {
  launch::CheckRequest check;
  check.programs = program_paths(request.selftest.launch);
  check.db = std::filesystem::absolute(request.selftest.db);
  check.hardware = request.hardware, check.nodes = request.nodes;
  check.working_folder = place.working_folder;
  check.judge = judge_node;
  auto findings = place.choice.config->check(check);
  if (!findings) return findings;
  if (launch::any_bad(*findings)) {
    findings->push_back({"loop", Health::kWarning, "skipped until the errors above are fixed"});
    return findings;
  }
  auto trial = try_nodes(request, place.choice.config->nodes_to_check(request.nodes), make_observer);
  if (!trial) return trial;
  for (auto& finding : *trial) findings->push_back(std::move(finding));
  return findings;
}

}  // namespace sweep::driver
