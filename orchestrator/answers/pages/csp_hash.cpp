#include <charconv>
#include <cstdint>

#include "orchestrator/answers/pages/heatmap_assets.h"

namespace sweep::answers {

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
