// SHA-1 (FIPS 180-4), which names things by their content (name-based UUIDs, RFC 4122). It keeps no secret.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace sweep {

std::array<std::uint8_t, 20> sha1(std::string_view message);

}  // namespace sweep
