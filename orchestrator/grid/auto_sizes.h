// `micro_batch_size: auto`, or {auto: [FIRST, LAST]}: the sizes among which a run finds the largest that fits
// and the fastest of each layout (docs/search.md).
#pragma once
#include "orchestrator/grid/spec.h"

namespace sweep::grid {

// Either form, whatever its bounds.
bool is_auto(const Node&);
// Every size up to 16, then eight to each doubling; the last one is always among them.
Expected<Dimension> auto_sizes(const Document&, const Node&, Slot micro_batch_size);

}  // namespace sweep::grid
