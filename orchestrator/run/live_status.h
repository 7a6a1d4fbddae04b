// LiveStatus: shows people how far the sweep is, at most twice a second. Counting and ranking cost more than storing a
// result, and more the larger the sweep is; nothing else is done meanwhile, so they have a tenth of the time.
#pragma once
#include <chrono>

#include "orchestrator/run/run_context.h"

namespace sweep::run {

// From the begin of a look to that of the next one: ten times what it took to read the database, from 0.4 to 30 s.
std::chrono::steady_clock::duration next_look_after(std::chrono::steady_clock::duration took);

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
  std::chrono::steady_clock::duration took_{};  // reading the database in the last look
};

}  // namespace sweep::run
