// The two clocks: the steady one measures spans, the system's one stamps records (UTC). Code that tests drive
// by hand takes a clock instead (orchestrator/run/clock.h).
#pragma once
#include <chrono>

#include "base/integers.h"

namespace sweep {

inline double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline i64 unix_ns_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace sweep
