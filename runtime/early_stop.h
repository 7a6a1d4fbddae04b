// EarlyStop: whether the timed steps of an attempt so far show that it is slower than the best trial: the 95 %
// confidence interval of their median lies above the bound that the attempt was given.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "base/integers.h"

namespace sweep {

class EarlyStop {
 public:
  // stop_above_ms: Attempt's; nullopt: it never stops early.
  explicit EarlyStop(std::optional<double> stop_above_ms) : bound_ms_(stop_above_ms) {}
  bool in_force() const { return bound_ms_.has_value(); }
  void add(i64 step_ns);
  // Stays true. Below six timed steps no confidence interval exists.
  bool is_clear() const { return clear_; }

 private:
  std::optional<double> bound_ms_;
  std::vector<double> step_ms_;
  std::size_t next_look_ = 0;  // steps at which the interval is computed again
  bool clear_ = false;
};

}  // namespace sweep
