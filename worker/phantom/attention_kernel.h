// AttentionKernel: how much a kernel of FlashAttention 2 computes, by its registered name and its grid. Pure.
#pragma once
#include <string>

namespace sweep::phantom {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
  double count() const { return static_cast<double>(x) * y * z; }
};

// The work of each head: so many queries, the last of them at the last key, and for each query the keys around its
// place: `left` before it and `right` after it; below 0: all.
struct AttentionSpan {
  double queries = 0, keys = 0;
  double left = -1, right = -1;
  double pairs() const;  // pairs of a query and a key
  // Reads what a launch of one of FlashAttention's kernels is given, by its first argument (Flash_fwd_params of LibTorch 2.11).
  static AttentionSpan read(const void* parameters);
};

// A block of the grid has `rows` queries (backward: keys) and works on all keys, or on its share of them where
// the grid's y splits them.
struct AttentionKernel {
  double passes = 0;  // matrix products of rows x keys x head size; 0: this kernel multiplies nothing
  int head = 0, rows = 0;
  bool causal = false, split = false;

  static AttentionKernel named(const std::string& mangled);
  // The span of this launch: what the parameters say where they agree with the grid; else, and without any, as many
  // keys as queries, and a window as long as all keys before a query. A deterministic backward pass has a grid that
  // fills the device, whatever its lengths.
  AttentionSpan span(const Grid&, int multiprocessors, const void* parameters = nullptr) const;
  double flops(const Grid&, const AttentionSpan&) const;
  // The length at which as many queries and keys are as much work.
  double length(const AttentionSpan&) const;
  double sequences(const Grid&) const;  // heads of all sequences
};

}  // namespace sweep::phantom
