#include "bench_kernels/shape/mixed_hardware.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "base/fail.h"

namespace sweep::shape {
namespace {

template <class T>
void to_least(T& value, const T& other) {
  value = std::min(value, other);
}

// Keeps the precisions that both have units for, each with its lower peak.
void to_least(std::map<std::string, double>& peaks, const std::map<std::string, double>& other) {
  std::erase_if(peaks, [&](const auto& each) { return !other.contains(each.first); });
  for (auto& [precision, peak] : peaks) to_least(peak, other.at(precision));
}

void to_mean(std::optional<Price>& price, const std::optional<Price>& other, double kinds_before) {
  if (!price || !other) return price.reset();
  price->usd_per_node_hour =
      (price->usd_per_node_hour * kinds_before + other->usd_per_node_hour) / (kinds_before + 1);
  price->source += "; " + other->source;
  price->date = std::min(price->date, other->date);
}

void add_kind(Hardware& mix, const Hardware& kind, double kinds_before) {
  mix.name += "+" + kind.name, mix.gpu += " + " + kind.gpu;
  if (std::strtod(kind.compute_capability.c_str(), nullptr) <
      std::strtod(mix.compute_capability.c_str(), nullptr))
    mix.compute_capability = kind.compute_capability;
  mix.memory_bytes =
      mix.memory_bytes && kind.memory_bytes ? std::min(mix.memory_bytes, kind.memory_bytes) : std::nullopt;
  to_least(mix.gpus_per_node, kind.gpus_per_node), to_least(mix.linked_gpus, kind.linked_gpus);
  to_least(mix.peak_flops, kind.peak_flops), to_least(mix.product_reach, kind.product_reach);
  to_least(mix.memory_bandwidth, kind.memory_bandwidth);
  to_least(mix.intra_node_bandwidth, kind.intra_node_bandwidth);
  to_least(mix.inter_node_bandwidth, kind.inter_node_bandwidth);
  to_least(mix.multiprocessors, kind.multiprocessors);
  to_mean(mix.price, kind.price, kinds_before);
}

}  // namespace

Expected<Hardware> mixed_hardware(std::string_view name) {
  std::optional<Hardware> out;
  double before = 0;
  auto kinds = kinds_of(name);
  for (const std::string& each : kinds) {
    SWEEP_GET(const auto kind, find_hardware(each));
    if (kind.gpu.empty() || std::ranges::count(kinds, each) > 1)
      return fail(
          ErrorKind::kInvalidValue, name,
          "'{}' is no mix of GPUs: {} {}; join the names of different GPUs, as in a100-80gb+h100-sxm-80gb",
          name, each, kind.gpu.empty() ? "has none" : "is there twice");
    if (!out)
      out = kind, out->earlier_prices.clear();
    else
      add_kind(*out, kind, before);
    ++before;
  }
  if (!std::ranges::is_sorted(kinds)) {
    std::ranges::sort(kinds);
    return fail(
        ErrorKind::kInvalidValue, name,
        "'{}' names its kinds in another order than '{}', which would be another hardware: write the latter",
        name, fmt::join(kinds, "+"));
  }
  return std::move(*out);
}

}  // namespace sweep::shape
