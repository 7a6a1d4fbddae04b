// Text for people and for shells.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace sweep {

// "0.5 KiB", "12.0 MiB", "79.2 GiB".
std::string human_bytes(double bytes);
// "1 configuration", "3 configurations".
std::string counted(std::int64_t number, std::string_view noun);
// A word as a POSIX shell reads it back unchanged. Plain words stay as they are; others come in single
// quotes.
std::string shell_word(std::string_view word);

}  // namespace sweep
