// The ranks of a trial that a rehearsal on phantom GPUs starts.
#pragma once
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::plan {

// Every rank of a trial of at most `most` ranks. Of a larger one a rank for each role: the pipeline stages.
// Ranks that differ only in their place in the other groups do the same work on shards of the same size;
// phantom NCCL takes them for mirrors of the one that runs. Ascending. Error: the degrees of the trial do not
// make a world.
Expected<std::vector<i64>> rehearsed_ranks(const Trial&, i64 most);

// Bytes of this machine's memory that the states of the started ranks take where the host updates them (offload
// optimizer and parameters): the moments; 0 for the others. Weights, masters and gradients there are pinned, and a
// phantom's pinned memory takes none (docs/phantom.md). REQUIRES: a trial of the built-in step whose degrees, stages and
// heads divide.
double rehearsed_host_bytes(const Trial&, i64 most);

}  // namespace sweep::plan
