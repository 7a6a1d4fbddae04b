// The two clocks of the agent: steady for spans, UTC for stamps.
#pragma once
#include <chrono>

#include "schema/trial.h"

namespace sweep::agent {

inline double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline i64 unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace sweep::agent
