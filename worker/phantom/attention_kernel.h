// AttentionKernel: how much a kernel of FlashAttention 2 computes, by its registered name and its grid. Pure.
#pragma once
#include <string>

namespace sweep::phantom {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
  double count() const { return static_cast<double>(x) * y * z; }
};

// A block of the grid has `rows` queries (backward: keys) and works on all keys, or on its share of them where
// the grid's y splits them. Queries and keys are taken for equally many.
struct AttentionKernel {
  double passes = 0;  // matrix products of rows x keys x head size; 0: this kernel multiplies nothing
  int head = 0, rows = 0;
  bool causal = false, split = false;

  static AttentionKernel named(const std::string& mangled);
  double flops(const Grid&) const;
  double length(const Grid&) const;     // queries of a head
  double sequences(const Grid&) const;  // heads of all sequences
};

}  // namespace sweep::phantom
