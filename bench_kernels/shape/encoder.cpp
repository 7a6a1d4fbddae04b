#include "bench_kernels/shape/encoder.h"

#include <fmt/format.h>

namespace sweep::shape {
namespace {

struct NotCombined {
  bool (*asked)(const Trial&);
  const char* what;
};

constexpr NotCombined kNotCombined[] = {
    {[](const Trial& t) { return t.tp > 1; },
     "tp above 1: the encoder's result and its gradient are not exchanged over a tensor group; use dp and "
     "zero"},
    {[](const Trial& t) { return t.pp > 1; },
     "pp above 1: stages send one tensor, and the decoder reads the encoder's result too; use dp and zero"},
    {[](const Trial& t) { return t.cp > 1; },
     "cp above 1: cross-attention has no ring and no exchange of heads; use dp and zero"},
    {[](const Trial& t) { return t.packing || !t.lengths.empty(); },
     "lengths: source and target of a pair would have lengths of their own; leave lengths out"},
    {[](const Trial& t) { return t.spec.sliding_window.has_value(); },
     "a sliding_window: an encoder's rows see all rows of their sequence; leave it out"},
    {[](const Trial& t) { return t.lora_rank > 0; },
     "lora_rank: the linear layers of cross-attention have no adapters yet; leave lora_rank out"},
    {[](const Trial& t) { return t.cuda_graph; },
     "cuda_graph: the encoder's tokens are not copied to where a graph reads; use cuda_graph false"},
    {[](const Trial& t) { return t.precision == Precision::kFp8; },
     "precision fp8: cross-attention's products are in 16 bits; use bf16_master"},
    {[](const Trial& t) { return t.data != DataSource::kNone; },
     "data: the file has the decoder's tokens alone; use data none"},
    {[](const Trial& t) { return t.optimizer == OptimizerKind::kAdafactor; },
     "optimizer adafactor: its rows and columns of cross-attention are not counted; use another optimizer"},
};

}  // namespace

i64 encoder_length(const Trial& t) {
  if (!t.spec.has_encoder()) return 0;
  return t.encoder_seq_len > 0 ? t.encoder_seq_len : t.seq_len;
}

std::optional<std::string> encoder_objection(const Trial& t) {
  if (!t.spec.has_encoder()) {
    if (t.encoder_seq_len == 0) return {};
    return fmt::format("encoder_seq_len {} with {}: it is a decoder without an encoder; leave it out",
                       t.encoder_seq_len, t.model);
  }
  for (const NotCombined& each : kNotCombined)
    if (each.asked(t)) return fmt::format("an encoder-decoder model with {}", each.what);
  if (t.spec.max_positions == 0 || encoder_length(t) <= t.spec.max_positions) return {};
  return fmt::format("encoder_seq_len {} > {} learned positions of the model", encoder_length(t),
                     t.spec.max_positions);
}

}  // namespace sweep::shape
