// Svg: what pictures share; words are escaped here.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "orchestrator/answers/format.h"

namespace sweep::answers {

// how: the attributes of the element.
inline std::string svg_text(double x, double y, std::string_view words, std::string_view how) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, how, escape_xml(words));
}

// A picture on white paper.
inline std::string svg_page(double width, double height, std::string_view title, std::string_view drawing) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" role=\"img\" font-family=\"system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif\">\n"
      "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      width, height, escape_xml(title), drawing);
}

}  // namespace sweep::answers
