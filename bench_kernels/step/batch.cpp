#include "bench_kernels/step/batch.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/rows.h"
#include "bench_kernels/model/positions.h"

namespace sweep::step {

namespace {

i64 token(std::uint64_t seed, i64 sequence, i64 position, i64 vocab) {
  const std::uint64_t h = kernels::mix64(kernels::mix64(seed ^ static_cast<std::uint64_t>(sequence) << 32) +
                                         static_cast<std::uint64_t>(position));
  return static_cast<i64>(h % static_cast<std::uint64_t>(vocab));
}

}  // namespace

Batch make_batch(const Trial& t, at::Device device, const shape::Place& place, std::uint64_t seed) {
  Batch batch;
  const auto options = at::TensorOptions(device).dtype(at::kLong);
  const auto positions = model::local_positions(t.seq_len, place.cp, t.cp);
  const i64 rows = t.micro_batch_size, local = static_cast<i64>(positions.size());
  const i64 first_row = place.dp * t.grad_accum * rows;
  for (i64 micro = 0; micro < t.grad_accum; ++micro) {
    at::Tensor tokens = at::empty({rows * local}, options);
    at::Tensor labels = at::empty({rows * local}, options);
    batch.tokens.push_back(tokens);
    batch.labels.push_back(labels);
    if (device.is_meta()) continue;
    std::vector<i64> inputs, targets;
    for (i64 row = 0; row < rows; ++row) {
      const i64 sequence = first_row + micro * rows + row;
      for (const i64 position : positions) {
        inputs.push_back(token(seed, sequence, position, t.spec.vocab_size));
        targets.push_back(token(seed, sequence, position + 1, t.spec.vocab_size));
      }
    }
    tokens.copy_(at::from_blob(inputs.data(), tokens.sizes(), at::kLong));
    labels.copy_(at::from_blob(targets.data(), labels.sizes(), at::kLong));
  }
  return batch;
}

}  // namespace sweep::step
