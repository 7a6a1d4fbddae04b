#include "worker/phantom/kernels.h"

#include <algorithm>
#include <cmath>

namespace sweep::phantom {
namespace {

double peak(const std::string& type) {
  const auto& peaks = description().device.peak_flops;
  for (const auto& name : {type, std::string("fp16"), std::string("fp32")})
    if (const auto found = peaks.find(name); found != peaks.end()) return found->second;
  return 10e12;
}

}  // namespace

KernelModel::KernelModel(const std::string& mangled)
    : attention_(AttentionKernel::named(mangled)), grouped_(grouped_kernel(mangled.c_str())) {}

Ns KernelModel::time(const Grid& grid, const Grid& block) const {
  const auto& profile = description().profile;
  if (attention_.passes == 0) return kernel_time(grid.count() * block.count());
  const double seconds = attention_.flops(grid) / (peak("bf16") * profile.attention_efficiency);
  return std::max<Ns>(profile.kernel_floor, std::llround(seconds * 1e9));
}

double traffic_of(const Product& p) {
  return p.batch * (p.m * p.k + p.k * p.n + p.m * p.n) * p.bytes;
}

Ns product_time(const Product& p) {
  const auto& d = description();
  constexpr double kTile = 128;
  const double tiles = std::ceil(p.m / kTile) * std::ceil(p.n / kTile) * p.batch;
  const double waves = std::ceil(tiles / d.device.multiprocessors);
  const double per_multiprocessor = peak(p.type) * d.profile.matmul_efficiency / d.device.multiprocessors;
  const double compute = waves * 2 * kTile * kTile * p.k / per_multiprocessor;
  const double traffic = traffic_of(p) / d.device.memory_bandwidth;
  return d.profile.kernel_floor + std::llround(std::max(compute, traffic) * 1e9);
}

}  // namespace sweep::phantom
