// Checks: figures of one row that cannot all be true.
#pragma once
#include "base/expected.h"
#include "schema/metrics.h"
#include "schema/trial.h"

namespace sweep::imports {

// Checks a row that ended ok, with its layout completed. tokens_known: a step trains on global_batch_size x seq_len.
Expected<void> figures_are_possible(const Trial&, const Metrics&, bool tokens_known);

}  // namespace sweep::imports
