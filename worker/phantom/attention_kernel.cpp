#include "worker/phantom/attention_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
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

// The area below max(0, x), up to x.
double ramp(double x) {
  return x > 0 ? x * x / 2 : 0;
}

// The places of the numbers that are read in a launch's parameters, as seen in launches of known lengths: Qkv_params,
// two pointers, three strides, three pointers, then b, seqlen_q, seqlen_k; window_size_left and window_size_right.
constexpr std::size_t kBatch = 176, kQueries = 180, kKeys = 184, kLeft = 388, kRight = 392;

double number_at(const void* parameters, std::size_t offset) {
  std::int32_t out = 0;
  std::memcpy(&out, static_cast<const char*>(parameters) + offset, sizeof out);
  return out;
}

}  // namespace

// A query at place p works on min(keys, p + right) - max(0, p - left - 1) keys; summed over p as an integral, as causal
// attention is half of all pairs.
double AttentionSpan::pairs() const {
  double from = keys - queries;
  const double to = keys;
  if (right >= 0) from = std::min(to, std::max(from, -right));  // who has a key at all
  double out = keys * (to - from);
  if (right >= 0) out -= ramp(keys - from - right) - ramp(keys - to - right);
  if (left >= 0) out -= ramp(to - left - 1) - ramp(from - left - 1);
  return out;
}

AttentionSpan AttentionSpan::read(const void* parameters) {
  return {number_at(parameters, kQueries), number_at(parameters, kKeys), number_at(parameters, kLeft),
          number_at(parameters, kRight)};
}

// flash_fwd_kernel<Flash_fwd_kernel_traits<head, rows, keys, ...>, dropout, causal, local, ...>, the backward pass's
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
  const std::size_t causal = by_splits ? 0 : 1, local = causal + 1;
  out.causal = flag(mangled, causal) || flag(mangled, local);
  out.split = by_splits && flag(mangled, 6);
  return out;
}

AttentionSpan AttentionKernel::span(const Grid& grid, int multiprocessors, const void* parameters) const {
  const double blocks = static_cast<double>(grid.x) * rows;
  if (parameters != nullptr) {
    const AttentionSpan said = AttentionSpan::read(parameters);
    const double split = passes > 2 ? said.keys : said.queries;  // columns that the grid's blocks divide
    const bool fits = split <= blocks && blocks < split + rows;
    const bool fills_device = passes > 2 && grid.x == std::ceil(multiprocessors / sequences(grid)) &&
                              number_at(parameters, kBatch) == grid.y;
    if (split > 0 && said.queries > 0 && (fits || fills_device)) return said;
  }
  return {blocks, blocks, -1, causal ? 0.0 : -1.0};
}

double AttentionKernel::length(const AttentionSpan& span) const {
  return std::sqrt(span.pairs() / (causal ? 0.5 : 1));
}

double AttentionKernel::sequences(const Grid& grid) const {
  return static_cast<double>(grid.z) * (split ? 1 : grid.y);
}

double AttentionKernel::flops(const Grid& grid, const AttentionSpan& span) const {
  return sequences(grid) * passes * 2.0 * span.pairs() * head;
}

}  // namespace sweep::phantom
