#include "orchestrator/run/live_status.h"

#include <algorithm>

namespace sweep::run {

// A little less than a tick of the run loop, so that one that comes early still shows.
constexpr std::chrono::steady_clock::duration kLeastBetween = std::chrono::milliseconds(400);
// One look at a database on a disk that stood still does not silence the next ones for minutes.
constexpr std::chrono::steady_clock::duration kMostBetween = std::chrono::seconds(30);

std::chrono::steady_clock::duration next_look_after(std::chrono::steady_clock::duration took) {
  return std::clamp(10 * took, kLeastBetween, kMostBetween);
}

void LiveStatus::show_if_due() {
  if (std::chrono::steady_clock::now() - shown_ >= next_look_after(took_)) show();
}

void LiveStatus::show() {
  shown_ = std::chrono::steady_clock::now();
  const double elapsed_s = std::chrono::duration<double>(context_.now() - began_).count();
  auto snapshot = take_snapshot(context_.store, context_.settings.sweep, elapsed_s);
  took_ = std::chrono::steady_clock::now() - shown_;
  // The next look tries again.
  if (!snapshot) return;
  // How many trials a strategy will run is not known.
  if (!context_.settings.strategy.runs_all()) snapshot->seconds_left.reset();
  context_.observer.on_snapshot(*snapshot);
  if (context_.settings.status_file) write_status_file(*context_.settings.status_file, *snapshot);
}

}  // namespace sweep::run
