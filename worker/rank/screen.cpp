#include <ATen/ATen.h>

#include <chrono>

#include "bench_kernels/comm/cuda_plugin.h"
#include "worker/rank/machine_findings.h"

namespace sweep::rank {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 5;          // the best of them counts
constexpr i64 kAllPairsUpTo = 16;  // ranks; beyond, each one receives from those 1, 2, 4, ... before it

void settle(const Device& device) {
  if (device.is_cuda()) comm::cuda_plugin()->synchronize(device.place().index());
}

// Seconds of the fastest of some tries after a first one.
template <class Work>
double best_seconds(const Device& device, Work&& work) {
  double best = 0;
  for (int i = 0; i <= kTries; ++i) {
    settle(device);
    const auto from = Clock::now();
    work();
    settle(device);
    const double took = std::chrono::duration<double>(Clock::now() - from).count();
    if (i == 1 || (i > 1 && took < best)) best = took;
  }
  return std::max(best, 1e-9);
}

double matmul_gflops(const Device& device) {
  const i64 n = device.is_cuda() ? 4096 : 384;
  const auto type = device.is_cuda() ? at::kBFloat16 : at::kFloat;
  const at::Tensor a = device.random_matrix(n, n, type);
  at::Tensor out = at::empty_like(a);
  const double seconds = best_seconds(device, [&] { at::mm_out(out, a, a); });
  return 2.0 * static_cast<double>(n * n * n) / seconds * 1e-9;
}

// Read and written bytes of a copy that no cache holds.
double memory_gb_s(const Device& device) {
  const i64 bytes = device.is_cuda() ? i64{1} << 30 : i64{64} << 20;
  const at::Tensor from = at::ones({bytes / 4}, at::TensorOptions(device.place()).dtype(at::kFloat));
  at::Tensor to = at::empty_like(from);
  const double seconds = best_seconds(device, [&] { to.copy_(from); });
  return 2.0 * static_cast<double>(bytes) / seconds * 1e-9;
}

// Each rank sends to the one `stride` after it and receives from the one before: no two share a link's end.
double link_gb_s(const Device& device, comm::Channel& world, i64 stride) {
  const i64 bytes = device.is_cuda() ? i64{32} << 20 : i64{2} << 20;
  const auto options = at::TensorOptions(device.place()).dtype(at::kFloat);
  const at::Tensor mine = at::ones({bytes / 4}, options);
  at::Tensor theirs = at::empty_like(mine);
  world.barrier();
  const double seconds =
      best_seconds(device, [&] { world.shift(mine, theirs, static_cast<int>(stride)).wait(); });
  return static_cast<double>(bytes) / seconds * 1e-9;
}

}  // namespace

ScreenFindings screen(const Device& device, comm::Channel& world) {
  ScreenFindings out{matmul_gflops(device), memory_gb_s(device), {}};
  const i64 n = world.size();
  for (i64 stride = 1; stride < n; stride = n <= kAllPairsUpTo ? stride + 1 : stride * 2)
    out.links.emplace_back((world.rank() + n - stride) % n, link_gb_s(device, world, stride));
  return out;
}

}  // namespace sweep::rank
