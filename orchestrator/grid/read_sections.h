// The sections of a grid file that are no axes: measure, limits, launch.
#pragma once
#include "orchestrator/grid/document.h"
#include "orchestrator/grid/grid.h"

namespace sweep::grid {

Status read_measure(const Document&, Grid&);  // also the top-level `repeats`
Status read_limits(const Document&, Grid&);
Status read_launch(const Document&, Grid&);  // to JSON, every key and type checked

}  // namespace sweep::grid
