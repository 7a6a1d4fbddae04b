// Kernels: how long a kernel is modelled to take, by its name and its grid.
#pragma once
#include <string>

#include "worker/phantom/attention_kernel.h"
#include "worker/phantom/grouped_kernel.h"
#include "worker/phantom/runtime.h"

namespace sweep::phantom {

// Models a kernel's cost by its registered name; threads x bytes if the name has no sizes.
class KernelModel {
 public:
  KernelModel() = default;
  explicit KernelModel(const std::string& mangled);
  Ns time(const Grid& grid, const Grid& block) const;
  GroupedKernel grouped() const { return grouped_; }

 private:
  AttentionKernel attention_;
  GroupedKernel grouped_ = GroupedKernel::kNone;
};

// FLOPs on the tensor cores, in waves of tiles over the multiprocessors, or the traffic where that takes
// longer.
struct Product {
  double m = 0, n = 0, k = 0, batch = 1;
  double bytes = 2;  // bytes of an element
  std::string type = "bf16";
};
Ns product_time(const Product& product);
double traffic_of(const Product& product);  // bytes that it reads and writes

}  // namespace sweep::phantom
