#include "orchestrator/launch/slurm/slurm_environment.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <string_view>

#include "runtime/own_job.h"

namespace sweep::launch {
namespace {

// The commands' own, and those of a job that this process may be part of (sbatch(1), squeue(1), ...:
// ENVIRONMENT).
constexpr std::array<std::string_view, 10> kTheirs{
    "SLURM_",    "SLURMD_", "SBATCH_", "SQUEUE_", "SCANCEL_",
    "SCONTROL_", "SACCT_",  "SINFO_",  "SRUN_",   kOrchestratorJobVariable};
constexpr std::array<std::string_view, 4> kReach{"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT",
                                                 "SLURM_CLUSTERS"};
struct Open {
  std::string_view variable, directive;
};
constexpr std::array<Open, 8> kOpen{{{"SBATCH_ACCOUNT", "account"},
                                     {"SBATCH_CONSTRAINT", "constraint"},
                                     {"SBATCH_EXPORT", "export"},
                                     {"SBATCH_PARTITION", "partition"},
                                     {"SBATCH_QOS", "qos"},
                                     {"SBATCH_RESERVATION", "reservation"},
                                     {"SBATCH_TIMELIMIT", "time"},
                                     {"SBATCH_WCKEY", "wckey"}}};
constexpr std::array<std::string_view, 4> kQuestions{"squeue", "sacct", "scontrol", "sinfo"};

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::set<std::string> directives_of(const std::string& script) {
  constexpr std::string_view kDirective = "#SBATCH --";
  std::set<std::string> out;
  std::ifstream in(script);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(kDirective, 0) == 0)
      out.insert(
          line.substr(kDirective.size(), line.find_first_of("= ", kDirective.size()) - kDirective.size()));
  return out;
}

}  // namespace

std::vector<std::string> slurm_environment(const std::vector<std::string>& argv, char* const* environment) {
  const bool submits = argv.front() == "sbatch", asks = among(kQuestions, argv.front());
  const auto said = submits ? directives_of(argv.back()) : std::set<std::string>();
  const auto stays = [&](std::string_view name) {
    if (asks && name == "TZ") return false;
    if (std::none_of(kTheirs.begin(), kTheirs.end(), [&](auto prefix) { return name.starts_with(prefix); }))
      return true;
    const auto open =
        std::find_if(kOpen.begin(), kOpen.end(), [&](const Open& o) { return o.variable == name; });
    const bool left_open = submits && open != kOpen.end() && !said.contains(std::string(open->directive));
    return left_open || among(kReach, name);
  };
  std::vector<std::string> out;
  for (char* const* entry = environment; *entry != nullptr; ++entry)
    if (const std::string_view whole = *entry; stays(whole.substr(0, whole.find('='))))
      out.emplace_back(whole);
  if (asks) out.emplace_back("TZ=UTC");
  return out;
}

}  // namespace sweep::launch
