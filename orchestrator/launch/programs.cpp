#include "orchestrator/launch/programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/process.h"

namespace sweep::launch {

namespace fs = std::filesystem;

fs::path companion(const std::string& name) {
  std::error_code ec;
  const auto beside = fs::read_symlink("/proc/self/exe", ec).parent_path() / name;
  if (fs::exists(beside, ec)) return beside;
  const auto found = find_program(name);
  return found ? fs::absolute(*found, ec) : beside;
}

Expected<void> check_programs(const Programs& programs) {
  for (const auto& program : {programs.agent, programs.rank})
    if (!program.empty() && ::access(program.c_str(), X_OK) != 0)
      return fail(
          fmt::format("{} is not there or cannot be executed; build it or name another", program.string()));
  return {};
}

}  // namespace sweep::launch
