// Site: what a cluster's people set once (/etc/sweep/site.yaml) and a user on top of it
// (~/.config/sweep/site.yaml), so that grid files can be shared. The same keys as `launch` of a grid; a
// grid's own word wins.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/launch_settings.h"

namespace sweep::grid {

struct Site {
  LaunchSettings launch;                            // checked
  std::optional<double> gpu_hours;                  // limit of one sweep
  std::map<std::string, double> usd_per_node_hour;  // key: hardware for which the site has a price
  std::string checkpoint_folder;             // folder where trials write checkpoints; empty: it is not said
  std::vector<std::filesystem::path> files;  // the files that were read
};

// Files that do not exist are none; later ones win, key by key.
Expected<Site> read_site(const std::vector<std::filesystem::path>& files);
// The places looked at: $SWEEP_SITE alone if set, else the two above.
std::vector<std::filesystem::path> site_files();

}  // namespace sweep::grid
