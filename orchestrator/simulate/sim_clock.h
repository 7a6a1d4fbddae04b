// SimClock: a clock that jumps to the next event. It owns the pending events, in order of time and then of
// insertion, so that a simulation with the same seed repeats every event.
#pragma once
#include <boost/asio/io_context.hpp>
#include <map>
#include <utility>

#include "orchestrator/run/clock.h"

namespace sweep::simulate {

class SimClock final : public run::Clock {
 public:
  using Seconds = std::chrono::duration<double>;

  Point now() const override { return now_; }
  void after(boost::asio::io_context&, Span span, std::function<void()> then) override {
    put(now_ + span, std::move(then));
  }
  void run(boost::asio::io_context& io) override {
    for (;;) {
      io.poll();  // signals, and what was posted for now
      if (io.stopped() || waiting_.empty()) return;
      auto next = waiting_.extract(waiting_.begin());
      now_ = next.key().first;
      next.mapped()();
    }
  }

  // An event beyond the longest simulation never comes; the clock could not count it.
  void after_s(double seconds, std::function<void()> then) {
    constexpr double kBeyond = 1e9;
    if (!(seconds < kBeyond)) return;
    put(now_ + std::chrono::duration_cast<Span>(Seconds(seconds)), std::move(then));
  }
  double seconds() const { return Seconds(now_.time_since_epoch()).count(); }  // since it was made

 private:
  void put(Point at, std::function<void()> then) { waiting_[{at, ++asked_}] = std::move(then); }

  Point now_{};
  long asked_ = 0;
  std::map<std::pair<Point, long>, std::function<void()>> waiting_;
};

}  // namespace sweep::simulate
