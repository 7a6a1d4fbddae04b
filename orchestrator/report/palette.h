// Palette: viridis (Smith and van der Walt, 2015; CC0), readable with every kind of colour blindness and in
// grey.
#pragma once
#include <array>
#include <string>
#include <string_view>

namespace sweep::report {

inline constexpr std::array<std::string_view, 10> kViridis = {"#440154", "#482878", "#3e4989", "#31688e",
                                                              "#26828e", "#1f9e89", "#35b779", "#6ece58",
                                                              "#b5de2b", "#fde725"};

struct Paint {
  std::string fill;
  bool light_text = false;  // white reads better on it than near-black (WCAG relative luminance)
};
Paint paint(double share);  // 0: dark end, 1: bright end

// Where a value stands between low and high: 0 to 1, brighter is better. Logarithmic when high is 50 times
// low or more.
inline constexpr double kLogRatio = 1000;
bool is_logarithmic(double low, double high);
double share_of(double value, double low, double high, bool lower_is_better);

}  // namespace sweep::report
