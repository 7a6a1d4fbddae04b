// PartClock: times the parts of a step on the clock of the device that runs them: the steady clock on CPU,
// stream events on an accelerator, where the host runs ahead and a host clock would time the launches only.
#pragma once
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace sweep::step {

class PartClock {
 public:
  explicit PartClock(c10::Device device) : device_(device), events_(!device.is_cpu() && !device.is_meta()) {}

  using Mark = std::size_t;
  void restart() { used_ = 0; }
  // Marks now (in stream order); marks are reused step after step.
  Mark mark() {
    if (used_ == marks_.size()) {
      marks_.emplace_back();
      if (events_) marks_.back().event.emplace(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    }
    Point& point = marks_[used_];
    if (events_)
      point.event->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    else
      point.time = std::chrono::steady_clock::now();
    return used_++;
  }
  // Waits until the device has passed the mark.
  void wait(Mark m) const {
    if (events_) marks_[m].event->synchronize();
  }
  // REQUIRES: both marks passed.
  std::int64_t span_ns(Mark from, Mark to) const {
    if (events_) return static_cast<std::int64_t>(marks_[from].event->elapsedTime(*marks_[to].event) * 1e6);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(marks_[to].time - marks_[from].time).count();
  }

 private:
  struct Point {
    std::chrono::steady_clock::time_point time;
    std::optional<c10::Event> event;
  };
  c10::Device device_;
  bool events_;
  std::vector<Point> marks_;
  std::size_t used_ = 0;
};

}  // namespace sweep::step
