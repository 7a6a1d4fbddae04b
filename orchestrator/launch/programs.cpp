#include "orchestrator/launch/programs.h"

#include <fmt/format.h>
#include <unistd.h>

namespace sweep::launch {

Expected<void> check_programs(const Programs& programs) {
  for (const auto& program : {programs.agent, programs.rank})
    if (!program.empty() && ::access(program.c_str(), X_OK) != 0)
      return fail(
          fmt::format("{} is not there or cannot be executed; build it or name another", program.string()));
  return {};
}

}  // namespace sweep::launch
