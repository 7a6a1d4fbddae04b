// The cost of a step for each rank of a trial: messages, bytes on the wire and the peak of device memory, of
// a real run on CPU; and the peaks that the dry run predicts.
#pragma once
#include <vector>

#include "schema/trial.h"

namespace sweep::testing {

struct RankCost {
  i64 sends = 0, receives = 0, pipeline_bytes = 0;  // through the pipeline's channel, in the last step
  i64 peak_bytes = 0;                               // over all steps
};
// The costs of every rank, each a forked process. Throws std::runtime_error when one fails.
std::vector<RankCost> costs_of_ranks(const Trial&, int steps = 3);
// The peaks of every stage of the pipeline.
std::vector<i64> dry_peaks(const Trial&);

}  // namespace sweep::testing
