// Kernels: how long a kernel is modelled to take, by its name and its grid.
#pragma once
#include <string>

#include "worker/phantom/runtime.h"

namespace sweep::phantom {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
  double count() const { return static_cast<double>(x) * y * z; }
};

// What the registered name of a kernel says about its cost; threads x bytes where the name has no sizes.
class KernelModel {
 public:
  KernelModel() = default;
  explicit KernelModel(const std::string& mangled);
  Ns time(const Grid& grid, const Grid& block) const;

 private:
  // FlashAttention: grid (query blocks, batch, heads), a block of rows_ queries against all keys.
  double attention_passes_ = 0;  // matrix products of rows x keys x head size; 0: not attention
  int head_ = 0, rows_ = 0;
  bool causal_ = false;
};

// FLOPs on the tensor cores, in waves of tiles over the multiprocessors, or the traffic where that takes
// longer.
struct Product {
  double m = 0, n = 0, k = 0, batch = 1;
  double bytes = 2;  // of an element
  std::string type = "bf16";
};
Ns product_time(const Product& product);

}  // namespace sweep::phantom
