#include "worker/phantom/attention_kernel.h"

#include <cstdlib>
#include <vector>

namespace sweep::phantom {
namespace {

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The integers "Li128E" among a mangled name's template arguments, from `from` on.
std::vector<int> integers(const std::string& mangled, std::size_t from) {
  std::vector<int> out;
  for (std::size_t at = from; (at = mangled.find("Li", at)) != std::string::npos; at += 2)
    out.push_back(std::atoi(mangled.c_str() + at + 2));
  return out;
}

// The n-th of the flags "Lb0ELb1E..." that follow the traits.
bool flag(const std::string& mangled, std::size_t n) {
  const auto traits_end = mangled.rfind("EELb");
  const auto at = traits_end + 4 + 4 * n;
  return traits_end != std::string::npos && at < mangled.size() && mangled[at] == '1';
}

}  // namespace

// flash_fwd_kernel<Flash_fwd_kernel_traits<head, rows, keys, ...>, dropout, causal, ...>, the backward pass's
// likewise, with a grid over blocks of keys, and flash_fwd_splitkv_kernel<traits, causal, local, alibi, even,
// even, softcap, split, ...>: what LibTorch takes for few queries. flash_fwd_splitkv_combine_kernel has the
// same traits and only adds the splits up.
AttentionKernel AttentionKernel::named(const std::string& mangled) {
  AttentionKernel out;
  const bool forward = has(mangled, "flash_fwd") && !has(mangled, "splitkv_combine");
  const bool backward = has(mangled, "flash_bwd_dq_dk_dv");
  const auto traits = mangled.find("kernel_traits");
  if (traits == std::string::npos || !(forward || backward)) return out;
  const auto sizes = integers(mangled, traits);
  if (sizes.size() < 3) return out;
  const bool by_splits = has(mangled, "splitkv");
  out.passes = forward ? 2 : 5;
  out.head = sizes[0];
  out.rows = forward ? sizes[1] : sizes[2];
  out.causal = flag(mangled, by_splits ? 0 : 1);
  out.split = by_splits && flag(mangled, 6);
  return out;
}

double AttentionKernel::length(const Grid& grid) const {
  return static_cast<double>(grid.x) * rows;
}

double AttentionKernel::sequences(const Grid& grid) const {
  return static_cast<double>(grid.z) * (split ? 1 : grid.y);
}

double AttentionKernel::flops(const Grid& grid) const {
  const double keys = split ? length(grid) / grid.y : length(grid);
  return grid.count() * passes * 2.0 * rows * keys * head * (causal ? 0.5 : 1);
}

}  // namespace sweep::phantom
