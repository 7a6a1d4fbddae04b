// The style sheet and the program of the heatmap page, embedded at build from heatmap.css and heatmap.js.
#pragma once
#include <string_view>

namespace sweep::report {

std::string_view heatmap_css();
std::string_view heatmap_js();

}  // namespace sweep::report
