#include "base/utf8.h"

namespace sweep {

CodePoint decode_utf8(std::string_view s, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > s.size()) return {};
  std::uint32_t code = first & (0xFF >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {code, length};
}

bool is_utf8(std::string_view s) {
  for (std::size_t at = 0; at < s.size();) {
    const std::size_t length = decode_utf8(s, at).length;
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string safe_text(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t at = 0; at < s.size();) {
    const CodePoint d = decode_utf8(s, at);
    if (d.length == 0) {
      out += "\xEF\xBF\xBD";
      ++at;
      continue;
    }
    const bool control = d.code < 0x20 || (d.code >= 0x7F && d.code < 0xA0) || d.code == 0x2028 ||
                         d.code == 0x2029 || (d.code >= 0x202A && d.code <= 0x202E) ||
                         (d.code >= 0x2066 && d.code <= 0x2069);
    if (control) {
      out += ' ';
    } else {
      out.append(s.substr(at, d.length));
    }
    at += d.length;
  }
  return out;
}

}  // namespace sweep
