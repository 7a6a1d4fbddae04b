// The rank algebra: the equations between the sizes of a trial, in one place. Grids, imports, the plan and
// the ranks ask it.
//   dp x tp x pp x cp = nodes x gpus_per_node           ep divides dp x cp, dp_shard divides dp
//   dp x micro_batch_size x grad_accum = global_batch_size
// solve() gives one side of a relation from the other, or says how the relation is broken. It never
// overflows.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/expected.h"
#include "schema/axis_domain.h"
#include "schema/trial.h"

namespace sweep::shape {

// Ranks of the largest trial that the ranges of its axes allow.
inline constexpr i64 kMaxWorld = axis_domain("nodes")->max * axis_domain("gpus_per_node")->max;

struct RankSizes {
  i64 nodes = 1, gpus_per_node = 1;
  i64 dp = 1, tp = 1, pp = 1, cp = 1, ep = 1, dp_shard = 1;
  i64 micro_batch_size = 1, grad_accum = 1, global_batch_size = 1;
  i64 node_gpus = 0;  // GPUs in a node of the hardware; 0: not known, or it has none

  static RankSizes of(const Trial&);
};

enum class Relation : std::uint8_t {
  // Each gives a size from the others.
  kGpusPerNode,  // gpus_per_node = dp x tp x pp x cp / nodes, at most node_gpus
  kDp,           // dp = nodes x gpus_per_node / (tp x pp x cp)
  kWorld,        // world = dp x tp x pp x cp
  kGradAccum,    // grad_accum = global_batch_size / (dp x micro_batch_size)
  kGlobalBatch,  // global_batch_size = dp x micro_batch_size x grad_accum
  // Each compares sizes.
  kPositive,   // every size is at least 1
  kPlacement,  // nodes x gpus_per_node = dp x tp x pp x cp, and gpus_per_node is at most node_gpus
  kExperts,    // ep divides dp x cp
  kShards,     // dp_shard divides dp
  kBatch,      // dp x micro_batch_size x grad_accum = global_batch_size
};

enum class Fault : std::uint8_t { kBelowOne, kNotWhole, kTooLarge, kUnequal };

struct Violation {
  Relation relation;
  Fault fault;
  // kNotWhole: left / right. kTooLarge: left is more than right. kUnequal: both sides. kBelowOne: left.
  i64 left = 0, right = 0;
  std::string_view size = {};  // kBelowOne: which

  bool operator==(const Violation&) const = default;
};

// The size that the relation gives; of one that compares, what both sides are (kPositive: 1).
// REQUIRES: all sizes but the one that the relation gives are at least 1, except for kPositive.
tl::expected<i64, Violation> solve(Relation, const RankSizes&);
// The first that the ranks break: kPositive, kWorld, kPlacement, kExperts, kShards.
std::optional<Violation> broken_by_ranks(const RankSizes&);

// The equation with its numbers: "dp = nodes x gpus_per_node / (tp x pp x cp) = 1 x 8 / (3 x 1 x 1) = 2.67 is
// not whole". hardware: whose node has node_gpus GPUs.
std::string sentence(const Violation&, const RankSizes&, std::string_view hardware = "the hardware");

// The same as an error: its code, and the size that the relation gives or that is wrong.
Error error_of(const Violation&, const RankSizes&);

// The shortest decimal that does not look whole. REQUIRES: b does not divide a.
std::string quotient_text(i64 a, i64 b);

}  // namespace sweep::shape
