// The style sheets of the pages and the program of the heatmap, embedded at build from heatmap.css, heatmap.js and
// report.css.
#pragma once
#include <string_view>

namespace sweep::report {

std::string_view heatmap_css();
std::string_view heatmap_js();
std::string_view report_css();

}  // namespace sweep::report
