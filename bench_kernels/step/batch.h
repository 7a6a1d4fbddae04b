// Batch: the synthetic tokens of one rank's step. The global batch is a pure function of seed, vocabulary,
// length and size; a rank takes its rows, and of each row its positions (context parallelism), so that every
// layout trains on the same tokens. Each sequence is
// exactly seq_len long (padding is max_length); labels are the next tokens. The same batch repeats each step,
// so that the loss must fall.
#pragma once
#include <ATen/core/Tensor.h>

#include "bench_kernels/shape/parallel_dims.h"
#include "schema/trial.h"

namespace sweep::step {

struct Batch {
  // One entry per micro-step, int64 [micro_batch_size * seq_len / cp].
  std::vector<at::Tensor> tokens, labels;
};

Batch make_batch(const Trial&, at::Device, const shape::Place&, std::uint64_t seed);

}  // namespace sweep::step
