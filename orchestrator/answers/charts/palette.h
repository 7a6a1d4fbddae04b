// Palette: viridis (Smith and van der Walt, 2015; CC0), readable with every kind of colour blindness and in
// grey.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sweep::answers {

inline constexpr std::array<std::string_view, 10> kViridis = {"#440154", "#482878", "#3e4989", "#31688e",
                                                              "#26828e", "#1f9e89", "#35b779", "#6ece58",
                                                              "#b5de2b", "#fde725"};

struct Paint {
  std::string fill;
  bool light_text = false;  // white reads better on it than near-black (WCAG relative luminance)
};
Paint paint(double share);  // 0: dark end, 1: bright end
// Text is light on the colours of the shares below this one, and dark from there on.
double light_text_below();

// The colours that the values of a picture take. The scale of many magnitudes is logarithmic. Else, where
// outliers (beyond the whiskers of a box plot, 1.5 interquartile ranges) would take the colours from the
// rest, they share the end colours.
inline constexpr double kLogRatio = 1000;
struct Colours {
  double low = 0, high = 0;                        // the ends of the scale
  bool log = false, below = false, above = false;  // values lie below or above the ends
  bool lower_is_better = false;
  double share(double value) const;  // 0: dark end, 1: bright end; brighter is better
};
Colours colours_for(std::vector<double> values, bool lower_is_better);

}  // namespace sweep::answers
