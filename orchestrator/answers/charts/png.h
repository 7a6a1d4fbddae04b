// Png: one of our own SVG pictures as PNG bytes, drawn by librsvg. Home of librsvg; it is loaded when first
// asked for, so that a program that draws nothing starts without it and one without librsvg still runs.
#pragma once
#include <string>

#include "base/expected.h"

namespace sweep::answers {

inline constexpr double kPngScale = 2;  // sharp in print and on dense screens
// scale: pixels per unit of the picture; made smaller where the picture would be too large for one image.
Expected<std::string> to_png(const std::string& svg, double scale = kPngScale);

}  // namespace sweep::answers
