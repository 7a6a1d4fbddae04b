#include "orchestrator/driver/cluster_check.h"

#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "orchestrator/launch/probe_answer.h"

namespace sweep::driver {

Expected<std::vector<Finding>> check_cluster(const ClusterCheckRequest& request,
                                             const MakeObserver& make_observer) {
  const auto choice = launcher_of(request.selftest);
  if (!choice) return tl::unexpected(choice.error());
  launch::CheckRequest check;
  check.programs = program_paths(request.selftest.launch);
  check.db = std::filesystem::absolute(request.selftest.db);
  check.hardware = request.hardware, check.nodes = request.nodes;
  const auto folder = working_folder_of(request.selftest.grid);
  if (!folder) return tl::unexpected(folder.error());
  check.working_folder = *folder;
  check.judge = judge_node;
  auto findings = choice->config->check(check);
  if (!findings) return findings;
  if (launch::any_bad(*findings)) {
    findings->push_back({"loop", Health::kWarning, "skipped until the errors above are fixed"});
    return findings;
  }
  auto trial = try_nodes(request, choice->config->nodes_to_check(request.nodes), make_observer);
  if (!trial) return trial;
  for (auto& finding : *trial) findings->push_back(std::move(finding));
  return findings;
}

}  // namespace sweep::driver
