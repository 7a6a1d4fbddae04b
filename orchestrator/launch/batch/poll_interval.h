// PollInterval: when the scheduler may be queried. Soon after a change, then with pauses that grow by half
// each time up to the longest one. Whatever changes, a span of time has at most kFirst queries and one more
// for each kSpan seconds of it: a sweep of ten thousand trials is no load for a scheduler. Its methods are
// given the time.
#pragma once
#include <algorithm>

namespace sweep::launch {

class PollInterval {
 public:
  static constexpr double kSpan = 5;    // seconds a question is worth, unless the longest pause is shorter
  static constexpr double kFirst = 10;  // questions at once, after a quiet time

  explicit PollInterval(double longest_pause_s)
      : longest_(std::max(kSoon, longest_pause_s)), span_(std::min(kSpan, longest_)) {}

  void poll_soon(double now_s) {
    pause_ = kSoon;
    next_s_ = std::min(next_s_, now_s + kSoon);
  }
  bool due(double now_s) const { return now_s >= next_s_ && credit(now_s) >= 1; }
  // Counts one query. A round in progress is completed; its extra queries are added to the next wait.
  void asked(double now_s) {
    credit_ = credit(now_s) - 1;
    as_of_s_ = now_s;
  }
  void round_over(double now_s) {
    next_s_ = now_s + pause_;
    pause_ = std::min(pause_ * 1.5, longest_);
  }

 private:
  static constexpr double kSoon = 0.5;  // seconds after a change
  double credit(double now_s) const { return std::min(kFirst, credit_ + (now_s - as_of_s_) / span_); }

  double longest_, span_;
  double pause_ = kSoon, next_s_ = 0;
  double credit_ = kFirst, as_of_s_ = 0;
};

}  // namespace sweep::launch
