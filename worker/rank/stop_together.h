// StopTogether: after which step all ranks of an attempt end it early (runtime/early_stop.h). Rank 0 decides by
// its own steps and announces the last one two steps ahead: every rank needs the others in each step, so all of
// them have read it by then. Nothing is sent through the groups that are measured.
#pragma once
#include "bench_kernels/comm/group.h"
#include "runtime/early_stop.h"
#include "schema/attempt.h"
#include "schema/records.h"

namespace sweep::rank {

class StopTogether {
 public:
  // meeting: how the ranks of this attempt find each other.
  StopTogether(const Attempt&, i64 rank, comm::GroupOptions meeting);

  // Is called after each step. True: it was the last one.
  bool after(const StepSample&);

 private:
  std::optional<i64> announced() const;

  EarlyStop early_;
  i64 rank_;
  c10::intrusive_ptr<c10d::Store> store_;  // null: this rank is alone, or nothing stops early
  i64 done_ = 0;                           // steps, warm-up included
  std::optional<i64> last_;
};

}  // namespace sweep::rank
