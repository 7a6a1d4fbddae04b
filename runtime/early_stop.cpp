#include "runtime/early_stop.h"

#include <algorithm>

#include "base/quantiles.h"

namespace sweep {

// An interval costs a sort of all steps: of many steps it is computed ever more rarely.
void EarlyStop::add(i64 step_ns) {
  if (!in_force() || clear_ || step_ns <= 0) return;
  step_ms_.push_back(static_cast<double>(step_ns) / 1e6);
  if (step_ms_.size() < next_look_) return;
  next_look_ = step_ms_.size() + std::max<std::size_t>(1, step_ms_.size() / 16);
  const auto interval = median_interval(step_ms_);
  clear_ = interval && interval->first > *bound_ms_;
}

}  // namespace sweep
