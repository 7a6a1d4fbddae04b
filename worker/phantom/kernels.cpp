#include "worker/phantom/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace sweep::phantom {
namespace {

// The integers "Li128E" among a mangled name's template arguments, from `from` on.
std::vector<int> integers(const std::string& mangled, std::size_t from) {
  std::vector<int> out;
  for (std::size_t at = from; (at = mangled.find("Li", at)) != std::string::npos; at += 2)
    out.push_back(std::atoi(mangled.c_str() + at + 2));
  return out;
}

double peak(const std::string& type) {
  const auto& peaks = description().device.peak_flops;
  for (const auto& name : {type, std::string("fp16"), std::string("fp32")})
    if (const auto found = peaks.find(name); found != peaks.end()) return found->second;
  return 10e12;
}

}  // namespace

// The names of FlashAttention 2 in LibTorch: flash_fwd_kernel<Flash_fwd_kernel_traits<head, rows, keys, ...>,
// dropout, causal, ...>, and the backward pass's, whose grid runs over blocks of keys.
KernelModel::KernelModel(const std::string& mangled) {
  const auto traits = mangled.find("kernel_traits");
  const bool forward = mangled.find("flash_fwd") != std::string::npos;
  const bool backward = mangled.find("flash_bwd_dq_dk_dv") != std::string::npos;
  if (traits == std::string::npos || !(forward || backward)) return;
  const auto sizes = integers(mangled, traits);
  if (sizes.size() < 3) return;
  attention_passes_ = forward ? 2 : 5;
  head_ = sizes[0];
  rows_ = forward ? sizes[1] : sizes[2];
  // The last bool arguments are <Is_dropout, Is_causal, ...>.
  const auto own = mangled.rfind("EELb");  // the flags after the traits' closing
  if (own != std::string::npos && own + 8 < mangled.size()) causal_ = mangled[own + 8] == '1';
}

Ns KernelModel::time(const Grid& grid, const Grid& block) const {
  const auto& profile = description().profile;
  if (attention_passes_ == 0) return kernel_time(grid.count() * block.count());
  const double length = static_cast<double>(grid.x) * rows_;  // queries and keys are taken for equally many
  const double tiles = grid.count();
  const double flops = tiles * attention_passes_ * 2.0 * rows_ * length * head_ * (causal_ ? 0.5 : 1);
  const double seconds = flops / (peak("bf16") * profile.attention_efficiency);
  return std::max<Ns>(profile.kernel_floor, std::llround(seconds * 1e9));
}

Ns product_time(const Product& p) {
  const auto& d = description();
  constexpr double kTile = 128;
  const double tiles = std::ceil(p.m / kTile) * std::ceil(p.n / kTile) * p.batch;
  const double waves = std::ceil(tiles / d.device.multiprocessors);
  const double per_multiprocessor = peak(p.type) * d.profile.matmul_efficiency / d.device.multiprocessors;
  const double compute = waves * 2 * kTile * kTile * p.k / per_multiprocessor;
  const double traffic = p.batch * (p.m * p.k + p.k * p.n + p.m * p.n) * p.bytes / d.device.memory_bandwidth;
  return d.profile.kernel_floor + std::llround(std::max(compute, traffic) * 1e9);
}

}  // namespace sweep::phantom
