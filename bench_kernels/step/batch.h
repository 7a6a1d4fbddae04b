// Batch: the tokens of one rank's step. The synthetic global batch is a pure function of seed, vocabulary,
// length and size; a rank takes its rows, and of each row its positions (context parallelism), so that every
// layout trains on the same tokens. Each sequence is
// exactly seq_len long (padding is max_length); labels are the next tokens. The same batch repeats each step,
// so that the loss must fall.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "bench_kernels/shape/parallel_dims.h"
#include "schema/trial.h"

namespace sweep::step {

struct Batch {
  // One entry per micro-step, int64 [micro_batch_size * seq_len / cp].
  std::vector<at::Tensor> tokens, labels;
};

// The token of a sequence of the global batch at a position from 0 to seq_len (the last is only a label).
using TokenSource = std::function<i64(i64 sequence, i64 position)>;
TokenSource synthetic_tokens(std::uint64_t seed, i64 vocab_size);

Batch make_batch(const Trial&, at::Device, const shape::Place&, const TokenSource&);

}  // namespace sweep::step
