// LiveStatus: shows people how far the sweep is, at most twice a second: counting and ranking cost more than
// storing a result.
#pragma once
#include <chrono>

#include "orchestrator/run/run_context.h"

namespace sweep::run {

class LiveStatus {
 public:
  explicit LiveStatus(const RunContext& context) : context_(context) {}

  void show();
  void show_if_due();

 private:
  const RunContext& context_;
  // A point on the clock of the run.
  Clock::Point began_ = context_.now();
  // A point on the clock of the people who look at it.
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace sweep::run
