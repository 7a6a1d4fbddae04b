// ParallelDims: where each rank stands and whom it communicates with. The sizes follow the rank algebra
// (rank_algebra.h); a ZeRO shard set spans dp_shard x cp ranks, and experts fold into it.
//
// Ranks are numbered with tp fastest, then cp, dp and pp, so that a tensor-parallel group is contiguous and
// stays inside a node (Narayanan et al. 2021, arXiv 2104.04473, section 3).
#pragma once
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::shape {

// A rank's coordinate in each dimension, 0-based.
struct Place {
  i64 tp = 0, cp = 0, dp = 0, pp = 0;
  bool operator==(const Place&) const = default;
};

// The groups that the step communicates in. kData: the ranks that hold the same parameters and different
// tokens (dp x cp). It is the product of kShard (ZeRO's shard set) and kReplicate. kExpert exchanges tokens;
// kExpertData holds the same experts in a shard set. kEnds: first and last pipeline stage (tied embeddings). kKeyValue:
// the ranks of a tensor group whose queries read the same key-value head (tp > kv_heads).
enum class Dimension {
  kWorld,
  kTensor,
  kContext,
  kPipeline,
  kData,
  kShard,
  kReplicate,
  kExpert,
  kExpertData,
  kEnds,
  kKeyValue
};
inline constexpr std::size_t kDimensions = 11;
const char* name_of(Dimension);

struct ParallelDims {
  i64 dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;
  i64 dp_shard = 1;    // divides dp
  i64 kv_sharers = 1;  // tensor-parallel ranks to a key-value head; divides tp
  i64 world() const { return dp * tp * pp * cp; }
  // Error: the equation of the rank algebra that the trial breaks, with its numbers.
  static Expected<ParallelDims> make(const Trial&);

  // REQUIRES: 0 <= rank < world().
  Place place(i64 rank) const;
  i64 rank_at(const Place&) const;
  // The ranks of the group that `rank` belongs to, ascending, `rank` itself among them.
  std::vector<i64> group(Dimension, i64 rank) const;

 private:
  bool together(Dimension, i64 left, i64 right) const;
};

}  // namespace sweep::shape
