// The frame of the pages for reading: head, policy, style, header, sections, and the texts that every page carries. It
// refuses nothing; what it is given as HTML must be safe. Private to answers/.
#pragma once
#include <string>
#include <string_view>

namespace sweep::answers {

// A script that pages carry, with the hash by which a page's policy lets it run.
struct Script {
  std::string_view text;    // the whole inside of a script element
  std::string_view sha256;  // its digest, in hexadecimal
};

std::string_view heatmap_css();
std::string_view report_css();
Script vega_script();
Script heatmap_script();
Script heatmap_live_script();  // the same page as `sweep serve` shows it
Script report_script();
Script drawn_script();  // draws the figures of a page by Vega

std::string csp_hash(const Script&);  // 'sha256-...' as a Content-Security-Policy takes it

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
