// Deadline: an instant of the steady clock that may not be set.
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>

namespace sweep::agent {

class Deadline {
 public:
  void set(double seconds) {
    constexpr double kLongest = 1e7;
    at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(std::min(seconds, kLongest)));
  }
  void clear() { at_.reset(); }
  bool over() const { return at_ && Clock::now() >= *at_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> at_;
};

}  // namespace sweep::agent
