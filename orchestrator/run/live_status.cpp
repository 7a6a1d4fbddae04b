#include "orchestrator/run/live_status.h"

#include <algorithm>

namespace sweep::run {

// A little less than a tick of the run loop, so that one that comes early still shows.
constexpr std::chrono::steady_clock::duration kLeastBetween = std::chrono::milliseconds(400);
// Nothing else is done during a look, and at a large sweep it takes long: the next begins after so many times that.
constexpr int kLooksBetween = 10;

void LiveStatus::show_if_due() {
  if (std::chrono::steady_clock::now() - shown_ >= std::max(kLeastBetween, kLooksBetween * took_)) show();
}

void LiveStatus::show() {
  shown_ = std::chrono::steady_clock::now();
  const double elapsed_s = std::chrono::duration<double>(context_.now() - began_).count();
  auto snapshot = take_snapshot(context_.store, context_.settings.sweep, elapsed_s);
  // The next tick tries again.
  if (!snapshot) return;
  // How many trials a strategy will run is not known.
  if (!context_.settings.strategy.runs_all()) snapshot->seconds_left.reset();
  context_.observer.on_snapshot(*snapshot);
  if (context_.settings.status_file) write_status_file(*context_.settings.status_file, *snapshot);
  took_ = std::chrono::steady_clock::now() - shown_;
}

}  // namespace sweep::run
