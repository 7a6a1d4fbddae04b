#include "bench_kernels/shape/splits.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench_kernels/shape/family.h"

namespace sweep::shape {
namespace {

using Sentence = std::optional<std::string>;

Sentence divides(const std::string& whole, i64 value, const std::string& degree, i64 parts) {
  if (value % parts == 0) return {};
  return fmt::format("{} {} is not divisible by {}={}", whole, value, degree, parts);
}

// Every rank of tp must hold a token: one with padding alone would have no logit to compare.
Sentence vocabulary_split(const Trial& t) {
  const i64 padded = padded_vocab(t), share = padded / t.tp;
  if ((t.tp - 1) * share < t.spec.vocab_size) return {};
  return fmt::format(
      "vocab_size {} with vocab_multiple {} and tp {} is padded to {}: {} rows on each rank, so the last "
      "rank "
      "would hold padding only; use a smaller {}",
      t.spec.vocab_size, t.vocab_multiple, t.tp, padded, share,
      t.vocab_multiple > 1 ? "vocab_multiple" : "tp");
}

Sentence tensor_split(const Trial& t) {
  if (t.spec.heads % t.tp != 0) return fmt::format("{} heads cannot be split over tp={}", t.spec.heads, t.tp);
  if (t.spec.kv_heads % t.tp != 0 && t.tp % t.spec.kv_heads != 0)
    return fmt::format("kv_heads {} and tp {}: neither divides the other", t.spec.kv_heads, t.tp);
  if (t.spec.head_dim % kv_sharers(t) != 0)
    return fmt::format(
        "tp {} > kv_heads {}: head_dim {} is not divisible by the {} ranks that share a key-value head", t.tp,
        t.spec.kv_heads, t.spec.head_dim, kv_sharers(t));
  if (auto s = divides("intermediate_size", t.spec.intermediate_size, "tp", t.tp)) return s;
  if (auto s = divides("dense_intermediate_size", t.spec.dense_intermediate_size, "tp", t.tp)) return s;
  if (auto s = vocabulary_split(t)) return s;
  if (!t.sp || t.tp == 1) return {};
  return divides(
      fmt::format("sp: micro_batch_size {} x seq_len {} / cp {} =", t.micro_batch_size, t.seq_len, t.cp),
      t.micro_batch_size * (t.seq_len / t.cp), "tp", t.tp);
}

// The causal mask is balanced over ranks by giving each an early and a late piece: 2 cp pieces.
Sentence sequence_split(const Trial& t) {
  if (t.cp == 1) return {};
  if (auto s = divides("seq_len", t.seq_len, "2*cp", 2 * t.cp)) return s;
  const bool whole_heads = t.spec.kv_heads % t.tp == 0 || t.tp % t.spec.kv_heads == 0;
  if (t.cp_comm_type != CpCommType::kAllToAll || !whole_heads) return {};
  if (auto s = divides("cp_comm_type all_to_all: heads / tp =", t.spec.heads / t.tp, "cp", t.cp)) return s;
  return divides("cp_comm_type all_to_all: key-value heads of a rank =", kv_heads_of_rank(t), "cp", t.cp);
}

}  // namespace

i64 kv_sharers(const Trial& t) {
  const bool shared = t.spec.kv_heads > 0 && t.tp > t.spec.kv_heads && t.tp % t.spec.kv_heads == 0;
  return shared ? t.tp / t.spec.kv_heads : 1;
}

i64 kv_heads_of_rank(const Trial& t) {
  return t.spec.kv_heads * kv_sharers(t) / t.tp;
}

i64 loss_rows(i64 rows, i64 entries, i64 bytes_of_logit, i64 chunk) {
  const i64 most = std::max<i64>(1, chunk / (entries * bytes_of_logit));
  const i64 chunks = (rows + most - 1) / most;
  return chunks > 0 ? (rows + chunks - 1) / chunks : 1;
}

std::optional<std::string> uneven_split(const Trial& t) {
  if (t.tp < 1 || t.cp < 1 || t.spec.kv_heads < 1 || t.vocab_multiple < 1)
    return fmt::format("tp = {}, cp = {}, kv_heads = {}, vocab_multiple = {}, but each is at least 1", t.tp,
                       t.cp, t.spec.kv_heads, t.vocab_multiple);
  if (auto s = sequence_split(t)) return s;
  return tensor_split(t);
}

std::optional<std::string> split_not_built(const Trial& t) {
  if (t.ep > 1 && t.spec.experts == 0)
    return fmt::format("ep {} > 1, but {} is a dense model without experts", t.ep, t.model);
  if (t.ep > 1 && t.dp_shard && *t.dp_shard * t.cp % t.ep != 0)
    return fmt::format(
        "ep {} does not divide a shard set of {} ranks (dp_shard {} x cp {}), in which experts exchange "
        "tokens; use an ep that does, or leave dp_shard out",
        t.ep, *t.dp_shard * t.cp, *t.dp_shard, t.cp);
  if (t.cp == 1 || t.cp_comm_type != CpCommType::kRing) return {};
  if (t.attention == AttentionKind::kMath)
    return fmt::format(
        "cp {} in a ring needs the log-sum-exp that only flash attention gives; take attention "
        "flash or auto, or cp_comm_type all_to_all",
        t.cp);
  if (family_of(t.spec).sinks())
    return fmt::format("cp {} in a ring has no sinks, which {} models have; take cp_comm_type all_to_all",
                       t.cp, t.spec.family);
  if (t.spec.sliding_window && *t.spec.sliding_window < t.seq_len)
    return fmt::format(
        "cp {} in a ring has no sliding window (of {} tokens here); take cp_comm_type all_to_all", t.cp,
        *t.spec.sliding_window);
  return {};
}

}  // namespace sweep::shape
