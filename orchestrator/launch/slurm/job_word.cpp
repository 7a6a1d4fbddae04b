#include "orchestrator/launch/slurm/job_word.h"

#include "orchestrator/launch/slurm/slurm_state.h"

namespace sweep::launch {
namespace {

// "ClusterName             = main"
std::string cluster_name(std::string_view configuration) {
  constexpr std::string_view kKey = "\nClusterName";
  const std::string text = "\n" + std::string(configuration);
  const auto at = text.find(kKey);
  if (at == std::string::npos) return {};
  const auto line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  const auto value = line.find_first_not_of(" =", kKey.size() - 1);
  return value == std::string::npos ? std::string()
                                    : line.substr(value, line.find_last_not_of(' ') + 1 - value);
}

JobEnd end_in(const JobFacts& facts) {
  const Meaning meaning = meaning_of(facts.state);
  switch (meaning.phase) {
    case Phase::kUnknown:
      return JobEnd::kUnknown;
    case Phase::kPending:
      return JobEnd::kLost;  // it ran: it was put back, perhaps because its node was lost
    case Phase::kEnded:
      return facts.state.starts_with("NODE_FAIL") || facts.state.starts_with("BOOT_FAIL") ? JobEnd::kLost
                                                                                          : JobEnd::kOver;
    default:
      return JobEnd::kAlive;
  }
}

}  // namespace

JobEnd end_of_job(i64 job, const std::string& cluster, const AskSlurm& ask) {
  if (job <= 0 || cluster.empty()) return JobEnd::kUnknown;
  const auto config = ask({"scontrol", "show", "config"});
  if (!config.ok() || cluster_name(config.out) != cluster) return JobEnd::kUnknown;
  const auto said = ask({"scontrol", "show", "job", "--oneliner", std::to_string(job)});
  if (!said.ok())
    return said.err.find("Invalid job id") == std::string::npos ? JobEnd::kUnknown : JobEnd::kLost;
  const auto facts = read_scontrol(said.out);
  return facts && facts->id == job ? end_in(*facts) : JobEnd::kUnknown;
}

}  // namespace sweep::launch
