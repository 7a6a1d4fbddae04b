// Shared by the commands that write pages: the options of a heatmap, and the stamp of a page.
#pragma once
#include <string>

#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/cli/command.h"

namespace sweep::cli {

// --rows, --cols, --value, --by
void add_heatmap_options(CLI::App& command, answers::HeatmapOptions&);

struct PageStamp {
  std::string at, version;  // "2026-01-31T12:00", "1.2.0 (build)"
  std::string sentence() const { return "Made " + at + " by sweep " + version + "."; }
};
PageStamp page_stamp();

}  // namespace sweep::cli
