// Suggested: values for the axes that a grid leaves unset, taken from the best earlier result of its model. They become
// the section `suggested` of the grid, which overrides nothing, so that a stored sweep holds them.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/grid/grid.h"

namespace sweep::driver {

struct Suggested {
  grid::Grid grid;                  // with the values
  std::vector<std::string> said{};  // a sentence for the source, and one for each value
  bool again = false;               // they are those that the sweep of this name has
};

// REQUIRES: the grid was read with these options. Error: the database has no result of its model on such hardware, or the grid
// asks about several models or machines, or runs a command.
Expected<Suggested> with_suggested(grid::Grid, const grid::ReadOptions&, const std::string& db);

}  // namespace sweep::driver
