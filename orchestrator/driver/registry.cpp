#include "orchestrator/driver/registry.h"

#include <algorithm>

#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/slurm/slurm_config.h"

namespace sweep::driver {
namespace {

constexpr LauncherEntry kLaunchers[] = {
    {"local", launch::configure_local},
    {"slurm", launch::configure_slurm, launch::surrounding_slurm_job, true},
    {"gridengine", launch::configure_gridengine, nullptr, true},
    {"ssh", launch::configure_ssh},
};

}  // namespace

std::span<const LauncherEntry> launchers() {
  return kLaunchers;
}

std::vector<std::string> launcher_names() {
  std::vector<std::string> out;
  for (const auto& entry : kLaunchers) out.emplace_back(entry.name);
  return out;
}

const LauncherEntry* find_launcher(std::string_view name) {
  const auto* found = std::ranges::find(kLaunchers, name, &LauncherEntry::name);
  return found == std::end(kLaunchers) ? nullptr : found;
}

}  // namespace sweep::driver
