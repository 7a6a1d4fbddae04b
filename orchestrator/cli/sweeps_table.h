// The table of a database's sweeps: what `sweep list` prints and the first page of `sweep serve` shows.
#pragma once
#include "orchestrator/store/store.h"

namespace sweep::cli {

// Sweeps in the order of SweepBook::sweeps().
Expected<Table> sweeps_table(store::Store&);

}  // namespace sweep::cli
