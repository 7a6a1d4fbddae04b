#include "orchestrator/answers/pages/page_frame.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/rehearsed.h"

namespace sweep::answers {

std::string section(std::string_view id, std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, body);
}

std::string framed_page(const PageFrame& page) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  if (page.again_s > 0) out += fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", page.again_s);
  // Scripts of known text may run, nothing may be loaded or sent.
  std::string allowed = csp_hash(report_script());
  if (page.draws) allowed += " " + csp_hash(vega_script()) + " " + csp_hash(drawn_script());
  out += fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src {}; img-src data:; base-uri 'none'; form-action 'none'\">\n",
      allowed);
  out += fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n", escape_xml(page.window),
                     report_css());
  out += fmt::format("<header>\n<h1>{}</h1>\n{}{}</header>\n<main>\n{}</main>\n", escape_xml(page.heading),
                     rehearsed_banner(page.rehearsed), page.lead, page.body);
  if (page.draws)
    out += fmt::format("<script>{}</script>\n<script>{}</script>\n", vega_script().text, drawn_script().text);
  return out + fmt::format("<script>{}</script>\n</body>\n</html>\n", report_script().text);
}

std::string csp_hash(const Script& script) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = "'sha256-";
  for (std::string_view rest = script.sha256; !rest.empty();) {
    const std::string_view three = rest.substr(0, 6);  // bytes, as hexadecimal
    rest.remove_prefix(three.size());
    std::uint32_t bits = 0;
    std::from_chars(three.data(), three.data() + three.size(), bits, 16);
    bits <<= 4 * (6 - three.size());
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= three.size() / 2 ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out + "'";
}

}  // namespace sweep::answers
