// Splits: whether a model and its batch divide over tensor and context parallelism, and which of their forms
// are not combined; one sentence for the planner and for the step.
#pragma once
#include <optional>
#include <string>

#include "schema/trial.h"

namespace sweep::shape {

// Tensor-parallel ranks whose queries read the same key-value head: tp / kv_heads where that is more than
// one.
i64 kv_sharers(const Trial&);
// Key-value heads that a rank attends with: kv_heads / tp, or the one it shares.
i64 kv_heads_of_rank(const Trial&);

// Rows of a token table: the vocabulary rounded up to a multiple of `multiple` x tp, as Megatron-LM's
// vocab_size_with_padding does. The rows beyond the vocabulary are padding.
constexpr i64 padded_vocab(i64 vocab_size, i64 multiple, i64 tp) {
  const i64 unit = multiple * tp;
  return (vocab_size + unit - 1) / unit * unit;
}
inline i64 padded_vocab(const Trial& t) {
  return padded_vocab(t.spec.vocab_size, t.vocab_multiple, t.tp);
}

// Rows of a micro-batch whose logits are there at once, of a vocabulary (or a share of it) of `entries`: as
// few chunks as keep each within so many bytes, about equally long. At least one row.
inline constexpr i64 kLossChunk = i64{256} << 20;
i64 loss_rows(i64 rows, i64 entries, i64 bytes_of_logit, i64 chunk = kLossChunk);

// Says what does not divide, with its numbers ("heads 6 % tp 4 = 2"). REQUIRES: degrees are at least 1.
std::optional<std::string> uneven_split(const Trial&);
// Names a combination that divides but is not built, with the reason and the way out.
std::optional<std::string> split_not_built(const Trial&);

}  // namespace sweep::shape
