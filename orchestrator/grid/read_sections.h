// The sections of a grid file that are no axes: measure, limits, strategy, launch.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "orchestrator/grid/document.h"
#include "orchestrator/grid/grid.h"

namespace sweep::grid {

Status read_measure(const Document&, Grid&);  // also the top-level `repeats`
Status read_limits(const Document&, Grid&);
Status read_strategy(const Document&, Grid&);
Status read_launch(const Document&, Grid&);

// The names of all launchers, and these.
std::vector<std::string_view> launchers_and(std::span<const std::string_view> others);
// The launchers among the keys of a map, each with its settings checked.
Expected<LaunchSettings> read_launchers(const Document&, const Node& map);

}  // namespace sweep::grid
