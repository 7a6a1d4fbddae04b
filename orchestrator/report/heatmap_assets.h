// The style sheets of the pages, the program of the heatmap, and the modules of Vega it draws with, embedded at build.
#pragma once
#include <string_view>

namespace sweep::report {

std::string_view heatmap_css();
std::string_view heatmap_js();
std::string_view heatmap_live_js();  // goes behind heatmap_js() in a page that is served
std::string_view report_css();
std::string_view vega_js();  // defines vegaRequire(name)

}  // namespace sweep::report
