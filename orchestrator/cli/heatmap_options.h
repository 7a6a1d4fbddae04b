// The options of a heatmap that `sweep heatmap` and `sweep serve` share.
#pragma once
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/cli/command.h"

namespace sweep::cli {

// --rows, --cols, --value, --by
void add_heatmap_options(CLI::App& command, answers::HeatmapOptions&);

}  // namespace sweep::cli
