// The integer of every count, size and id.
#pragma once
#include <cstdint>

namespace sweep {

using i64 = std::int64_t;

}  // namespace sweep
