#include "worker/agent/evidence/processor_clock.h"

#include <algorithm>

namespace sweep::agent {
namespace {

constexpr double kEach = 1;  // seconds between two looks at all threads

}  // namespace

double ProcessorClock::at(double now_s, const std::vector<pid_t>& processes) {
  if (!looked_s_ || now_s - *looked_s_ >= kEach) look(now_s, processes);
  seconds_ += (now_s - last_s_.value_or(now_s)) * runs_;
  last_s_ = now_s;
  return seconds_;
}

void ProcessorClock::look(double now_s, const std::vector<pid_t>& processes) {
  std::map<pid_t, i64> now;
  i64 most = 0;
  for (const pid_t process : processes)
    for (const auto& [thread, waited] : waits_(process)) {
      const auto before = waited_.find(thread);  // else it began since then
      most = std::max(most, waited - (before == waited_.end() ? 0 : before->second));
      now[thread] = waited;
    }
  const double passed = looked_s_ ? now_s - *looked_s_ : 0;
  runs_ = passed > 0 ? std::clamp(1 - static_cast<double>(most) / 1e9 / passed, kSlowestClock, 1.0) : 1;
  waited_ = std::move(now), looked_s_ = now_s;
}

}  // namespace sweep::agent
