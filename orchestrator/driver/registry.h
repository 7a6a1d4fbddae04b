// The launchers that this program has: one line each. Everything that differs between launchers is asked of
// their LaunchConfig.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "orchestrator/launch/launch_config.h"

namespace sweep::driver {

struct LauncherEntry {
  // The name in grid files, site profiles, `--on` and the database. Its keys: schema/launch_settings.h.
  std::string_view name;
  // Makes it from what site profiles and grid say together. existing_job: the job whose
  // nodes are used instead of new ones; 0: none.
  Expected<std::unique_ptr<launch::LaunchConfig>> (*configure)(const LaunchSettings&, i64 existing_job);
  // The job that this process runs in; 0: none. Null: this launcher cannot use the nodes of an existing job.
  i64 (*surrounding_job)() = nullptr;
  // It submits scripts, which `sweep plan --sbatch` shows.
  bool has_scripts = false;
};

// The first one is used where neither the command line nor the grid names another.
std::span<const LauncherEntry> launchers();
std::vector<std::string> launcher_names();
// Null: there is none of that name.
const LauncherEntry* find_launcher(std::string_view name);

}  // namespace sweep::driver
