// ParallelDims: the rank algebra. world = dp x tp x pp x cp; ep divides dp x cp; an error prints the
// equation.
#pragma once
#include "schema/expected.h"
#include "schema/trial.h"

namespace sweep::shape {

struct ParallelDims {
  i64 dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;
  i64 world() const { return dp * tp * pp * cp; }
  // nodes x ranks_per_node must equal the product; the error spells both sides with their numbers.
  static Expected<ParallelDims> make(const Trial&);
};

}  // namespace sweep::shape
