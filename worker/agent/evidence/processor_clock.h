// ProcessorClock: the time of an attempt for its deadlines where its processes share the machine with others. While a
// thread of them waits for a processor it runs slower, so that a busy machine makes no hang.
#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/integers.h"

namespace sweep::agent {

// It runs at this share of the steady clock at least: who waits for others that spin ends too.
inline constexpr double kSlowestClock = 0.1;

class ProcessorClock {
 public:
  // How long each thread of a process has waited, in nanoseconds, by its id (proc::processor_waits).
  using Waits = std::function<std::map<pid_t, i64>(pid_t)>;
  explicit ProcessorClock(Waits waits) : waits_(std::move(waits)) {}

  // Seconds. REQUIRES: now_s never goes back.
  double at(double now_s, const std::vector<pid_t>& processes);

 private:
  // The largest share of the time since the last look that one thread waited.
  void look(double now_s, const std::vector<pid_t>& processes);

  Waits waits_;
  double seconds_ = 0, runs_ = 1;
  std::optional<double> last_s_, looked_s_;
  std::map<pid_t, i64> waited_;
};

}  // namespace sweep::agent
