// BucketedGradientSync: the data-parallel GradientSync. It owns flat buckets, filled with the parameters in
// reverse order (the order in which backward produces gradients), and makes each gradient a view into its
// bucket, so that an all-reduce needs no further copy. A bucket leaves as soon as its last gradient of the
// last micro-step is there; buckets leave in the same order on every rank. Its memory is the buckets and
// nothing else, the same with any backend and on meta tensors.
#pragma once
#include <memory>

#include "bench_kernels/parallel/gradient_sync.h"
#include "bench_kernels/parallel/group.h"
#include "schema/progress.h"

namespace sweep::parallel {

// bucket_bytes: a bucket is closed before it would grow larger (one parameter alone may be). progress: where
// entered and finished collectives are counted, or nullptr. The result must outlive the parameters' last
// backward.
std::unique_ptr<GradientSync> make_bucketed_sync(BackendPtr, std::int64_t bucket_bytes,
                                                 ProgressPage* progress = nullptr);

}  // namespace sweep::parallel
