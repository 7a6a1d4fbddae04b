#include "bench_kernels/model/positions.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numeric>

namespace sweep::model {
namespace {

// Inverse frequencies, in float as the reference implementations compute them; with Llama 3.1's scaling:
// wavelengths beyond the trained range are stretched by `factor`, those well inside kept, those between
// blended.
std::vector<float> inverse_frequencies(const ModelSpec& s) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < s.head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(s.head_dim);
    out.push_back(1.0f / static_cast<float>(std::pow(s.rope_theta, static_cast<double>(exponent))));
  }
  if (!s.rope_scaling) return out;
  const RopeScaling& r = *s.rope_scaling;
  const double longest = static_cast<double>(r.original_max_positions);
  for (float& f : out) {
    const double wavelength = 2 * M_PI / f;
    if (wavelength > longest / r.low_freq_factor) {
      f = static_cast<float>(f / r.factor);
    } else if (wavelength >= longest / r.high_freq_factor) {
      const double smooth =
          (longest / wavelength - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
      f = static_cast<float>((1 - smooth) * f / r.factor + smooth * f);
    }
  }
  return out;
}

}  // namespace

RotaryTables rotary_tables(const ModelSpec& spec, const std::vector<std::int64_t>& positions,
                           const at::TensorOptions& options) {
  const auto rows = static_cast<std::int64_t>(positions.size());
  RotaryTables tables;
  tables.cos = at::empty({rows, spec.head_dim / 2}, options);
  tables.sin = at::empty_like(tables.cos);
  if (options.device().is_meta()) return tables;
  std::vector<double> cosines, sines;
  const std::vector<float> frequencies = inverse_frequencies(spec);
  for (const std::int64_t position : positions) {
    for (const float f : frequencies) {
      const auto angle = static_cast<double>(static_cast<float>(position) * f);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }
  tables.cos.copy_(at::from_blob(cosines.data(), tables.cos.sizes(), at::kDouble));
  tables.sin.copy_(at::from_blob(sines.data(), tables.sin.sizes(), at::kDouble));
  return tables;
}

// Zig-zag: of 2 x size equal pieces a rank holds one early and one late, so that each has as much of the
// causal mask (Zhu et al. 2024, ring-flash-attention; Llama 3, arXiv 2407.21783, section 3.3.2).
std::vector<std::int64_t> local_positions(std::int64_t seq_len, std::int64_t rank, std::int64_t size) {
  if (size == 1) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(seq_len));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const std::int64_t piece = seq_len / (2 * size);
  std::vector<std::int64_t> positions;
  for (const std::int64_t number : {rank, 2 * size - 1 - rank})
    for (std::int64_t i = 0; i < piece; ++i) positions.push_back(number * piece + i);
  return positions;
}

}  // namespace sweep::model
