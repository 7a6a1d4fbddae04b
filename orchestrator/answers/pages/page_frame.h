// The frame of the pages for reading: head, policy, style, header, sections, the scripts that copy and draw. It refuses
// nothing; what it is given as HTML must be safe. Private to answers/.
#pragma once
#include <string>
#include <string_view>

namespace sweep::answers {

struct PageFrame {
  std::string window, heading;  // any text
  bool rehearsed = false;
  std::string lead = {};  // HTML below the heading
  std::string body = {};  // HTML: sections
  int again_s = 0;        // it is asked for anew after so many seconds; 0: never
  bool draws = false;     // it has figures of vega_charts.h
};
std::string framed_page(const PageFrame&);

// Empty where there is nothing to show.
std::string section(std::string_view id, std::string_view title, const std::string& body);

}  // namespace sweep::answers
