// Kernels: how long a kernel is modelled to take, by its name and its grid, and by the kernel table.
#pragma once
#include <string>

#include "worker/phantom/attention_kernel.h"
#include "worker/phantom/library_kernels.h"
#include "worker/phantom/runtime.h"

namespace sweep::phantom {

// Factors of m x k and k x n.
struct Product {
  double m = 0, n = 0, k = 0, batch = 1;
  double bytes = 2, result_bytes = 2;  // bytes of an element of the factors, and of one of the result
  std::string type = "bf16";
};

// Models a kernel's cost by its registered name; threads x bytes if the name has no sizes.
class KernelModel {
 public:
  KernelModel() = default;
  explicit KernelModel(const std::string& mangled);
  // `arguments`: of the launch, as CUDA is given them; null: not known.
  KernelTime time(const Grid& grid, const Grid& block, void* const* arguments) const;
  GroupedKernel grouped() const { return grouped_; }
  // The product whose sizes this kernel is given. REQUIRES: grouped() is kSizes.
  Product product(void* const* arguments) const;
  const ListKernel& list() const { return list_; }

 private:
  AttentionKernel attention_;
  GroupedKernel grouped_ = GroupedKernel::kNone;
  bool groups_fp8_ = false;
  ListKernel list_;
};

// FLOPs on the tensor cores, in waves of tiles over the multiprocessors, or the traffic where that takes
// longer. A product of few tiles splits its inner size over the multiprocessors that are left (split-K, as
// cuBLASLt's algorithms do: CUBLASLT_ALGO_CONFIG_SPLITK_NUM).
KernelTime product_time(const Product& product);
double traffic_of(const Product& product);  // bytes that it reads and writes

// A kernel of so many threads that tells nothing else: its bytes are a guess, and so is its time.
KernelTime kernel_time(double threads);
KernelTime kernel_time_of_bytes(double bytes);  // bytes: those that it reads and writes

}  // namespace sweep::phantom
