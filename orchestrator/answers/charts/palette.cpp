#include "orchestrator/answers/charts/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "orchestrator/answers/statistics/statistics.h"

namespace sweep::answers {
namespace {

std::array<int, 3> channels(std::string_view hex) {
  std::array<int, 3> out{};
  for (std::size_t i = 0; i < 3; ++i)
    std::from_chars(hex.data() + 1 + 2 * i, hex.data() + 3 + 2 * i, out[i], 16);
  return out;
}

double luminance(const std::array<int, 3>& rgb) {
  static constexpr double kWeight[] = {0.2126, 0.7152, 0.0722};
  double out = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = rgb[i] / 255.0;
    out += kWeight[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return out;
}

}  // namespace

Paint paint(double share) {
  const double at = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * double(kViridis.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kViridis.size() - 2);
  const double part = at - static_cast<double>(below);
  const auto a = channels(kViridis[below]), b = channels(kViridis[below + 1]);
  std::array<int, 3> mix{};
  for (std::size_t i = 0; i < 3; ++i)
    mix[i] = static_cast<int>(std::floor(a[i] + part * (b[i] - a[i]) + 0.5));
  // Contrast with white (1.05 / (l + 0.05)) above that with near-black ((l + 0.05) / 0.06).
  const double l = luminance(mix);
  return {fmt::format("#{:02x}{:02x}{:02x}", mix[0], mix[1], mix[2]), 1.05 / (l + 0.05) > (l + 0.05) / 0.06};
}

double light_text_below() {
  double light = 0, dark = 1;  // viridis gets brighter all along
  while (dark - light > 1e-6) {
    const double middle = (light + dark) / 2;
    (paint(middle).light_text ? light : dark) = middle;
  }
  return dark;
}

Colours colours_for(std::vector<double> values, bool lower_is_better) {
  constexpr std::size_t kFewest = 5;  // fewer have no quartiles worth the name
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  Colours out{.lower_is_better = lower_is_better};
  if (values.empty()) return out;
  std::ranges::sort(values);
  out.low = values.front(), out.high = values.back();
  out.log = out.low > 0 && out.high / out.low >= kLogRatio;
  if (out.log || values.size() < kFewest) return out;
  const double first = *quantile(values, 0.25), third = *quantile(values, 0.75),
               reach = 1.5 * (third - first);
  if (!(reach > 0)) return out;
  out.low = *std::ranges::lower_bound(values, first - reach);
  out.high = *(std::ranges::upper_bound(values, third + reach) - 1);
  out.below = out.low > values.front(), out.above = out.high < values.back();
  return out;
}

double Colours::share(double value) const {
  if (!(high > low)) return 1;
  const double at = std::clamp(value, low, high);
  const double share = log ? std::log(at / low) / std::log(high / low) : (at - low) / (high - low);
  return std::clamp(lower_is_better ? 1 - share : share, 0.0, 1.0);
}

}  // namespace sweep::answers
