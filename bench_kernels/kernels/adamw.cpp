#include "bench_kernels/kernels/adamw.h"

#include <algorithm>

#include "bench_kernels/kernels/device_launch.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

constexpr std::int64_t kNumbersOfABlock = std::int64_t{1} << 15;

// The launch of the tensors from `first` on, at most kMostTensors; where the next one begins.
std::size_t launch_adamw(const AdamwLists& a, std::size_t first) {
  namespace d = sweep::device;
  const std::size_t end = std::min(a.parameters.size(), first + d::kMostTensors);
  d::AdamwArgs args{};
  args.chunk = kNumbersOfABlock, args.tensors = static_cast<int>(end - first);
  args.beta1 = a.by.beta1, args.beta2 = a.by.beta2, args.coefficient = a.coefficient;
  args.decay = a.by.decay, args.step_size = a.by.step_size, args.root = a.by.root, args.eps = a.by.eps;
  bool packed = true;
  std::int64_t bytes = 0;
  for (std::size_t i = first; i < end; ++i) {
    const at::Tensor copy = a.copies.empty() ? at::Tensor() : a.copies[i];
    const std::int64_t n = a.parameters[i].numel();
    args.of[i - first] = {device::at_of(a.parameters[i]),
                          device::at_of(a.grads[i]),
                          device::at_of(a.means[i]),
                          device::at_of(a.squares[i]),
                          device::at_of(copy),
                          n,
                          args.chunks};
    args.chunks += (n + args.chunk - 1) / args.chunk;
    packed = packed && device::aligned({a.parameters[i], a.grads[i], a.means[i], a.squares[i], copy}, {});
    bytes += 6 * device::bytes_of(a.parameters[i]) + device::bytes_of(a.grads[i]) + device::bytes_of(copy);
  }
  // The kernel's stored type is the one of fewer digits.
  const at::ScalarType kept = a.parameters[first].scalar_type(), grad = a.grads[first].scalar_type();
  const at::Tensor& stored = !a.copies.empty()                          ? a.copies[first]
                             : grad == at::kFloat && kept != at::kFloat ? a.parameters[first]
                                                                        : a.grads[first];
  const bool master = stored.scalar_type() != kept;
  args.wide_grads = grad != stored.scalar_type() ? 1 : 0;
  TORCH_CHECK(!master || kept == at::kFloat, "masters of an AdamW update are fp32, not ", kept);
  TORCH_CHECK(args.wide_grads == 0 || grad == at::kFloat, "gradients of an AdamW update in ", grad);
  constexpr unsigned kThreads = d::kMostThreads;
  device::run(stored, {master ? "adamw_master" : "adamw",
                       {},
                       packed,
                       device::blocks_for(args.chunks),
                       kThreads,
                       0,
                       &args,
                       bytes});
  return end;
}

}  // namespace

bool updates_lists(const at::Tensor& like) {
  return fused(Fused::kUpdate) && has_device_kernels(like);
}

void adamw(const AdamwLists& a) {
  if (a.parameters.empty() || a.parameters[0].is_meta()) return;  // the update in place allocates nothing
  for (std::size_t first = 0; first < a.parameters.size();) first = launch_adamw(a, first);
}

}  // namespace sweep::kernels
