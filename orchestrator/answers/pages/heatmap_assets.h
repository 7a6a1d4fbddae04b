// The texts that pages carry: style sheets and scripts, each script with the hash by which a page's policy
// lets it run.
#pragma once
#include <string>
#include <string_view>

namespace sweep::answers {

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

}  // namespace sweep::answers
