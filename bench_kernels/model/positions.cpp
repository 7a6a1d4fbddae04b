#include "bench_kernels/model/positions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sweep::model {
namespace {

// YaRN (Peng et al. 2023, arXiv 2309.00071, section 3.2): dimensions that turn less than beta_slow times within the
// trained range are stretched by `factor`, those that turn more than beta_fast times kept, those between blended along
// a line by their number.
void stretch(std::vector<float>& frequencies, const YarnScaling& y, double theta) {
  const auto pairs = static_cast<double>(frequencies.size());
  const auto number_of = [&](double turns) {
    return pairs * std::log(static_cast<double>(y.original_max_positions) / (turns * 2 * M_PI)) /
           std::log(theta);
  };
  const double first = number_of(y.beta_fast), last = number_of(y.beta_slow);
  const double low = std::max(y.truncate ? std::floor(first) : first, 0.0);
  double high = std::min(y.truncate ? std::ceil(last) : last, 2 * pairs - 1);
  if (high == low) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] =
        static_cast<float>(frequencies[i] / y.factor * stretched + frequencies[i] * (1 - stretched));
  }
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

// Factors of the angles' sines and cosines: of what turns, and of what stays.
struct Scales {
  double turned = 1, plain = 1;
};
// The scores' factor is the square of that of all dimensions, as in DeepSeek's modelling code.
Scales scales_of(const ModelSpec& s) {
  if (s.query_pre_attn_scalar > 0) {
    const double all =
        std::pow(static_cast<double>(s.head_dim) / static_cast<double>(s.query_pre_attn_scalar), 0.25);
    return {all, all};
  }
  if (!s.yarn) return {};
  const YarnScaling& y = *s.yarn;
  const double all = y.mscale_all_dim > 0 ? yarn_scale(y.factor, y.mscale_all_dim) : 1;
  const bool both = y.mscale > 0 && y.mscale_all_dim > 0;
  const double rotary = both ? yarn_scale(y.factor, y.mscale) / all : yarn_scale(y.factor, 1);
  return {rotary * all, all};
}

// Inverse frequencies, in float as the reference implementations compute them; with Llama 3.1's scaling:
// wavelengths beyond the trained range are stretched by `factor`, those well inside kept, those between
// blended.
std::vector<float> inverse_frequencies(const ModelSpec& s, bool local) {
  const double theta = local ? s.rope_local_theta : s.rope_theta;
  std::vector<float> out;
  const std::int64_t turned = s.latent() ? s.rope_head_dim : s.head_dim;
  for (std::int64_t i = 0; i < turned; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(turned);
    out.push_back(1.0f / static_cast<float>(std::pow(theta, static_cast<double>(exponent))));
  }
  if (local) return out;
  for (float& f : out) f = static_cast<float>(f / s.rope_linear_factor);
  if (s.yarn) stretch(out, *s.yarn, s.rope_theta);
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

kernels::Angles rotary_tables(const ModelSpec& spec, const std::vector<std::int64_t>& positions,
                              const at::TensorOptions& options, bool local) {
  const auto rows = static_cast<std::int64_t>(positions.size());
  kernels::Angles tables;
  tables.cos = at::empty({rows, spec.head_dim / 2}, options);
  tables.sin = at::empty_like(tables.cos);
  if (options.device().is_meta()) return tables;
  std::vector<double> cosines, sines;
  const std::vector<float> frequencies = inverse_frequencies(spec, local);
  const Scales scales = scales_of(spec);
  const auto plain = static_cast<std::size_t>(spec.head_dim / 2) - frequencies.size();
  for (const std::int64_t position : positions) {
    for (const float f : frequencies) {
      const auto angle = static_cast<double>(static_cast<float>(position) * f);
      cosines.push_back(scales.turned * std::cos(angle));
      sines.push_back(scales.turned * std::sin(angle));
    }
    cosines.insert(cosines.end(), plain, scales.plain);
    sines.insert(sines.end(), plain, 0.0);
  }
  tables.cos.copy_(at::from_blob(cosines.data(), tables.cos.sizes(), at::kDouble));
  tables.sin.copy_(at::from_blob(sines.data(), tables.sin.sizes(), at::kDouble));
  return tables;
}

at::Tensor position_tensor(const std::vector<std::int64_t>& positions, at::Device device) {
  const at::Tensor out =
      at::empty({static_cast<std::int64_t>(positions.size())}, at::TensorOptions(device).dtype(at::kLong));
  if (out.is_meta()) return out;
  std::vector<std::int64_t> host = positions;
  at::Tensor(out).copy_(at::from_blob(host.data(), out.sizes(), at::kLong));
  return out;
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
