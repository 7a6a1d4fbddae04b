#include "orchestrator/export/interrupt.h"

#include <chrono>
#include <cmath>
#include <ctime>

namespace sweep::exports {

Interrupts::Interrupts() {
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGINT);
  sigaddset(&watched_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
}

Interrupts::~Interrupts() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::asked() {
  const timespec none{0, 0};
  if (!asked_) asked_ = sigtimedwait(&watched_, nullptr, &none) > 0;
  return asked_;
}

bool Interrupts::pause(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (!asked_) {
    const double left = std::chrono::duration<double>(until - Clock::now()).count();
    if (left <= 0) return true;
    timespec wait{};
    wait.tv_sec = static_cast<std::time_t>(left);
    wait.tv_nsec = static_cast<long>((left - std::floor(left)) * 1e9);
    if (sigtimedwait(&watched_, nullptr, &wait) > 0) asked_ = true;
  }
  return false;
}

}  // namespace sweep::exports
