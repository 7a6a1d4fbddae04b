// UTF-8: decoding, and text of outside made safe to print.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sweep {

struct CodePoint {
  std::uint32_t code = 0;
  std::size_t length = 0;
};
// The code point that starts at byte `at`. Its length is 0 when the bytes there are not valid UTF-8.
CodePoint decode_utf8(std::string_view, std::size_t at);

bool is_utf8(std::string_view);

// Valid UTF-8 on one line: an invalid byte becomes U+FFFD, a control character (terminal escapes too) a
// space.
std::string safe_text(std::string_view);

}  // namespace sweep
