// LiveStatus: shows people how far the sweep is, at most twice a second and for at most a tenth of the time: counting
// and ranking cost more than storing a result, and more the larger the sweep is.
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
  std::chrono::steady_clock::duration took_{};  // the last look
};

}  // namespace sweep::run
