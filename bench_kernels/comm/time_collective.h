// Times one collective of a group and checks its result: what `sweep calibrate` measures of a network. Every
// rank of the group calls it with the same arguments. It judges nothing.
#pragma once
#include <ATen/core/TensorBody.h>

#include <functional>

#include "bench_kernels/comm/channel.h"

namespace sweep::comm {

// The kinds that are measured. kSend is an exchange: every rank sends to the next one of its group and
// receives from the one before.
inline constexpr Kind kMeasuredKinds[] = {Kind::kAllReduce, Kind::kAllGather, Kind::kReduceScatter,
                                          Kind::kAllToAll, Kind::kSend};

struct CollectiveTiming {
  std::int64_t bytes = 0;  // counted like nccl-tests: the whole tensor; for kSend the message
  // Time of one call on the slowest rank of the group; mean of many calls, like nccl-tests.
  double seconds = 0;
  std::int64_t wrong = 0;  // elements of this rank's result that are not what they should be
};

// `bytes` is rounded to whole fp32 elements for each rank. `settle` waits for the device. `budget_s`: about
// how long it may take.
CollectiveTiming time_collective(Channel&, Kind, std::int64_t bytes, c10::Device,
                                 const std::function<void()>& settle, double budget_s);

}  // namespace sweep::comm
