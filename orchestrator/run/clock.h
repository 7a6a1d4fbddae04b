// Clock: time as the run loop knows it: what time it is, when to go on, and how to wait. The real one is the
// machine's steady clock; a simulation brings its own, in which hours pass at once. It decides nothing.
#pragma once
#include <chrono>
#include <functional>

namespace boost::asio {
class io_context;
}

namespace sweep::run {

class Clock {
 public:
  using Point = std::chrono::steady_clock::time_point;
  using Span = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;
  virtual Point now() const = 0;
  // Once, after so long, from run() of this context; never when the context stops before.
  virtual void after(boost::asio::io_context&, Span, std::function<void()>) = 0;
  // Handlers and what was put off, until the context is stopped.
  virtual void run(boost::asio::io_context&) = 0;
};

Clock& steady_clock();

inline Clock::Span span_of(double seconds) {
  return std::chrono::duration_cast<Clock::Span>(std::chrono::duration<double>(seconds));
}

}  // namespace sweep::run
