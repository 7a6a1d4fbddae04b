// BatchHost: what a batch job needs of its launcher: the scheduler, a clock, and a way to report events.
#pragma once
#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/launcher.h"

namespace sweep::launch {

class BatchHost {
 public:
  virtual ~BatchHost() = default;
  virtual Scheduler& scheduler() = 0;
  virtual void report(const Event&) = 0;
  // Query the scheduler soon: something changed.
  virtual void poll_soon() = 0;
  virtual double now_s() const = 0;  // steady clock
};

}  // namespace sweep::launch
