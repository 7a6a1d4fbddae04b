// Axes that a grid declares itself (workload.axes).
#pragma once
#include <string>
#include <vector>

#include "orchestrator/grid/rows.h"

namespace sweep::grid {

// An axis that the grid itself declares. It is one more column of the results, and part of the trial's id.
struct OwnAxis {
  std::string name;
  Type type = Type::kInt;
  // Its value where the grid gives none, as written; checked like any value.
  NodePtr preset;
  // Words that it may take; empty: any.
  std::vector<std::string> values;
  std::string unit;
  Place place;
  DocumentPtr document;
  Slot slot = 0;
};

// Whether sweep itself uses a name: for an axis or a dimension of the model, or for another column of the results, where a
// value of the grid's own axis would not be seen.
bool is_name_of_sweep(std::string_view);

// An axis that is there already is replaced. Error: no name, type or default, with its place.
Status read_own_axes(const DocumentPtr&, const Entry&, std::vector<OwnAxis>&);

}  // namespace sweep::grid
