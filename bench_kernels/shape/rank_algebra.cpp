#include "bench_kernels/shape/rank_algebra.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <limits>
#include <utility>

#include "base/expected.h"

namespace sweep::shape {
namespace {

using Solved = tl::expected<i64, Violation>;

// Degrees reach 10^6 each: their product needs 128 bits. Larger than 64 bits is cut to the largest number.
__extension__ using Wide = __int128;
i64 product(std::initializer_list<i64> factors) {
  constexpr i64 kMost = std::numeric_limits<i64>::max();
  Wide all = 1;
  for (const i64 f : factors) all = all > kMost ? all : all * f;
  return all > kMost ? kMost : static_cast<i64>(all);
}

i64 world_of(const RankSizes& s) {
  return product({s.dp, s.tp, s.pp, s.cp});
}
i64 placed(const RankSizes& s) {
  return product({s.nodes, s.gpus_per_node});
}
i64 sequences(const RankSizes& s) {
  return product({s.dp, s.micro_batch_size, s.grad_accum});
}

// Names the size that the relation gives or, if it compares, the one that is usually wrong.
std::string_view size_of(Relation relation) {
  constexpr std::array<std::string_view, 10> kSizes{
      "gpus_per_node", "dp", "world",    "grad_accum",       "global_batch_size", "",
      "nodes",         "ep", "dp_shard", "global_batch_size"};
  return kSizes[static_cast<std::size_t>(relation)];
}

tl::unexpected<Violation> broken(Relation relation, Fault fault, i64 left, i64 right) {
  return tl::unexpected(Violation{relation, fault, left, right});
}

Solved at_most(Relation relation, i64 value, i64 most) {
  if (value > most) return broken(relation, Fault::kTooLarge, value, most);
  return value;
}

// top / bottom, if that is whole and at most `most`.
Solved quotient(Relation relation, i64 top, i64 bottom, i64 most) {
  if (top % bottom != 0) return broken(relation, Fault::kNotWhole, top, bottom);
  return at_most(relation, top / bottom, most);
}

Solved equal(Relation relation, i64 left, i64 right) {
  if (left != right) return broken(relation, Fault::kUnequal, left, right);
  return left;
}

Solved placement(const RankSizes& s) {
  if (s.node_gpus > 0 && s.gpus_per_node > s.node_gpus)
    return broken(Relation::kPlacement, Fault::kTooLarge, s.gpus_per_node, s.node_gpus);
  return equal(Relation::kPlacement, placed(s), world_of(s));
}

Solved positive(const RankSizes& s) {
  const std::pair<std::string_view, i64> sizes[] = {{"dp", s.dp},       {"tp", s.tp},
                                                    {"pp", s.pp},       {"cp", s.cp},
                                                    {"ep", s.ep},       {"dp_shard", s.dp_shard},
                                                    {"nodes", s.nodes}, {"gpus_per_node", s.gpus_per_node}};
  for (const auto& [name, value] : sizes)
    if (value < 1) return tl::unexpected(Violation{Relation::kPositive, Fault::kBelowOne, value, 1, name});
  return 1;
}

// The relation's left side with the numbers of its right side.
std::string equation(Relation relation, const RankSizes& s) {
  switch (relation) {
    case Relation::kGpusPerNode:
      return fmt::format("gpus_per_node = dp x tp x pp x cp / nodes = {} x {} x {} x {} / {}", s.dp, s.tp,
                         s.pp, s.cp, s.nodes);
    case Relation::kDp:
      return fmt::format("dp = nodes x gpus_per_node / (tp x pp x cp) = {} x {} / ({} x {} x {})", s.nodes,
                         s.gpus_per_node, s.tp, s.pp, s.cp);
    case Relation::kWorld:
      return fmt::format("world = dp x tp x pp x cp = {} x {} x {} x {}", s.dp, s.tp, s.pp, s.cp);
    case Relation::kGradAccum:
      return fmt::format("grad_accum = global_batch_size / (dp x micro_batch_size) = {} / ({} x {})",
                         s.global_batch_size, s.dp, s.micro_batch_size);
    case Relation::kGlobalBatch:
      return fmt::format("global_batch_size = dp x micro_batch_size x grad_accum = {} x {} x {}", s.dp,
                         s.micro_batch_size, s.grad_accum);
    case Relation::kPlacement:
      return fmt::format("nodes x gpus_per_node = {} x {}", s.nodes, s.gpus_per_node);
    case Relation::kExperts:
      return fmt::format("dp x cp / ep = {} x {} / {}", s.dp, s.cp, s.ep);
    case Relation::kShards:
      return fmt::format("dp / dp_shard = {} / {}", s.dp, s.dp_shard);
    case Relation::kBatch:
      return fmt::format("dp x micro_batch_size x grad_accum = {} x {} x {}", s.dp, s.micro_batch_size,
                         s.grad_accum);
    case Relation::kPositive:
      break;
  }
  return {};
}

std::string too_large(const Violation& v, const RankSizes& s, std::string_view hardware) {
  if (v.relation == Relation::kPlacement)
    return fmt::format("gpus_per_node = {} is more than the {} of {}", v.left, v.right, hardware);
  const bool cut = v.left == std::numeric_limits<i64>::max();  // the number itself is not known then
  const std::string left = equation(v.relation, s) + (cut ? "" : fmt::format(" = {}", v.left));
  if (v.relation == Relation::kGpusPerNode && s.node_gpus > 0)
    return fmt::format("{} is more than the {} of {}", left, v.right, hardware);
  return fmt::format("{} is more than {}{}", left, v.right, v.relation == Relation::kWorld ? " ranks" : "");
}

}  // namespace

RankSizes RankSizes::of(const Trial& t) {
  return {.nodes = t.nodes,
          .gpus_per_node = t.gpus_per_node,
          .dp = t.dp,
          .tp = t.tp,
          .pp = t.pp,
          .cp = t.cp,
          .ep = t.ep,
          .dp_shard = t.dp_shard.value_or(t.dp),
          .micro_batch_size = t.micro_batch_size,
          .grad_accum = t.grad_accum,
          .global_batch_size = t.global_batch_size};
}

tl::expected<i64, Violation> solve(Relation relation, const RankSizes& s) {
  switch (relation) {
    case Relation::kGpusPerNode:
      return quotient(relation, world_of(s), s.nodes,
                      s.node_gpus > 0 ? s.node_gpus : axis_domain("gpus_per_node")->max);
    case Relation::kDp:
      return quotient(relation, placed(s), product({s.tp, s.pp, s.cp}), axis_domain("dp")->max);
    case Relation::kWorld:
      return at_most(relation, world_of(s), kMaxWorld);
    case Relation::kGradAccum:
      return quotient(relation, s.global_batch_size, product({s.dp, s.micro_batch_size}),
                      axis_domain("grad_accum")->max);
    case Relation::kGlobalBatch:
      return at_most(relation, sequences(s), axis_domain("global_batch_size")->max);
    case Relation::kPositive:
      return positive(s);
    case Relation::kPlacement:
      return placement(s);
    case Relation::kExperts:
      return quotient(relation, product({s.dp, s.cp}), s.ep, std::numeric_limits<i64>::max());
    case Relation::kShards:
      return quotient(relation, s.dp, s.dp_shard, s.dp);
    case Relation::kBatch:
      return equal(relation, sequences(s), s.global_batch_size);
  }
  return 0;
}

std::optional<Violation> broken_by_ranks(const RankSizes& s) {
  for (const Relation relation :
       {Relation::kPositive, Relation::kWorld, Relation::kPlacement, Relation::kExperts, Relation::kShards})
    if (const auto solved = solve(relation, s); !solved) return solved.error();
  return std::nullopt;
}

std::string sentence(const Violation& v, const RankSizes& s, std::string_view hardware) {
  switch (v.fault) {
    case Fault::kBelowOne:
      return fmt::format("{} = {}, but a degree is at least 1", v.size, v.left);
    case Fault::kNotWhole:
      return fmt::format("{} = {} is not whole", equation(v.relation, s), quotient_text(v.left, v.right));
    case Fault::kTooLarge:
      return too_large(v, s, hardware);
    case Fault::kUnequal:
      break;
  }
  const std::string left = fmt::format("{} = {}, but ", equation(v.relation, s), v.left);
  if (v.relation == Relation::kBatch) return left + fmt::format("global_batch_size = {}", v.right);
  return left + fmt::format("dp x tp x pp x cp = {} x {} x {} x {} = {}", s.dp, s.tp, s.pp, s.cp, v.right);
}

Error error_of(const Violation& v, const RankSizes& s) {
  constexpr std::array kCodes{ErrorKind::kInvalidValue, ErrorKind::kInvalidValue, ErrorKind::kInvalidValue,
                              ErrorKind::kConflict};
  const std::string_view subject = v.fault == Fault::kBelowOne ? v.size : size_of(v.relation);
  return {sentence(v, s), kCodes[static_cast<std::size_t>(v.fault)], std::string(subject)};
}

std::string quotient_text(i64 a, i64 b) {
  const double q = static_cast<double>(a) / static_cast<double>(b);
  for (int digits = 2; digits < 12; ++digits) {
    std::string text = fmt::format("{:.{}f}", q, digits);
    if (text.find_last_not_of('0') != text.find('.')) return text;
  }
  return fmt::format("{}", q);
}

}  // namespace sweep::shape
