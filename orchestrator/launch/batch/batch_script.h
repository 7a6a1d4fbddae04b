// The common parts of batch scripts for all schedulers: the job's name, their first lines, and the call of the agent.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/programs.h"
#include "schema/agent_call.h"
#include "schema/launch_settings.h"

namespace sweep::launch {

// The name by which a job is found where its number is not known.
std::string batch_job_name(const AllocationId&);

// mark: begins a line that the scheduler reads ("#SBATCH", "#$"). A directive is one line: a line break in it
// would start a line of shell, so a control character anywhere is an error.
Expected<std::string> batch_script_head(std::string_view mark, const std::vector<std::string>& directives);

// The stated options of the batch system, in the order of the table: (option, value). A list gives one pair
// for each item.
using BatchOptions = std::vector<std::pair<std::string, std::string>>;
template <LaunchTable T>
BatchOptions batch_options(const T& table) {
  BatchOptions out;
  const auto add = [&](std::string_view option, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::vector<std::string>>)
      for (const std::string& each : value) out.emplace_back(option, each);
    else if constexpr (std::is_same_v<Value, std::string>)
      out.emplace_back(option, value);
    else if constexpr (std::is_same_v<Value, i64>)
      out.emplace_back(option, std::to_string(value));
  };
  for_each_setting<T>([&](const LaunchKey& key, auto member) {
    if (!key.option.empty() && (table.*member).stated) add(key.option, *(table.*member));
  });
  return out;
}

// The longest that a job may wait in the queue. nullopt: without limit.
std::optional<double> pending_limit_s(const Setting<double>& max_pending_minutes);

// How the script calls the agent, as far as schedulers do not differ. idle_s: after so long without work it
// ends by itself.
AgentCall batch_agent_call(const AllocationRequest& wanted, const Programs& programs, double idle_s);

}  // namespace sweep::launch
