#include "orchestrator/launch/batch/batch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "orchestrator/launch/allocation_call.h"
#include "schema/codec.h"

namespace sweep::launch {

std::string batch_job_name(const AllocationId& id) {
  return "sweep-" + id;
}

Expected<std::string> batch_script_head(std::string_view mark, const std::vector<std::string>& directives) {
  std::string out = "#!/bin/bash\n";
  for (const auto& line : directives) {
    const bool broken = std::any_of(line.begin(), line.end(), [](unsigned char c) {
      return (c < 0x20 && c != '\t') || c == 0x7f;  // schedulers take a tab as it is
    });
    if (broken)
      return fail(fmt::format(
          "a batch script cannot hold the control character in {}: rename that folder, file or setting",
          dump(nlohmann::json(line))));
    out += fmt::format("{} {}\n", mark, line);
  }
  return out;
}

std::optional<double> pending_limit_s(const Setting<double>& max_pending_minutes) {
  return *max_pending_minutes > 0 ? std::optional(*max_pending_minutes * 60) : std::nullopt;
}

AgentCall batch_agent_call(const AllocationRequest& wanted, const Programs& programs, double idle_s) {
  AgentCall out = call_for(wanted);
  out.rank_program = programs.rank;
  out.idle_limit_s = std::ceil(idle_s);
  out.screen = programs.screen;
  out.zygote = programs.zygote;
  return out;
}

}  // namespace sweep::launch
