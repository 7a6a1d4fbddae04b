// While it lives, this thread, and ranks that it forks, run on one core: the one that it runs on. Ranks that compute a
// fraction of a millisecond between two collectives then wake each other without an interrupt of another core, and
// none waits actively, since ShmSegment counts one processor; which core that is, the scheduler decides anew for each
// run. Ranks on several cores are tested by unit.comm, parity's RankRecords and tests of whole programs.
#pragma once
#include <sched.h>

namespace sweep::testing {

class OneCore {
 public:
  OneCore() {
    known_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
    const int core = sched_getcpu();
    if (!known_ || core < 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() {
    if (known_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_{};
  bool known_ = false;
};

}  // namespace sweep::testing
