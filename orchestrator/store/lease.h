// Lease: the row that says who runs a sweep, and the judgement whether that holder is alive.
#pragma once
#include <map>

#include "orchestrator/store/db.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

inline constexpr i64 kLeaseSilenceNs = 60'000'000'000;

// This process: host, boot id, pid and its start time.
LeaseHolder this_process();
// Field 22 of /proc/PID/stat; absent when the process is gone or only a zombie is left of it.
std::optional<i64> living_pid_start(i64 pid);

class Leases {
 public:
  Leases(Seams seams, bool network) : seams_(std::move(seams)), network_(network) {}

  // The living other that keeps us from taking it; absent: taken.
  std::optional<LeaseHolder> take(Work&, i64 sweep, bool take_over);
  void beat(Work&, i64 sweep);
  void release(Work&, i64 sweep);
  // The holder, unless it is known to be dead.
  std::optional<LeaseHolder> holder(Work&, i64 sweep);
  // Refuses the transaction when our lease was lost or another holds the sweep.
  void guard(Work&, i64 sweep);
  // Refuses when our lease was lost; one that holds none may go on.
  void refuse_if_lost(Work& work, i64 sweep) {
    if (tokens_.contains(sweep)) guard(work, sweep);
  }
  // As guard, and refuses when we hold no lease.
  void require(Work&, i64 sweep);
  bool held_by_other(Work&, i64 sweep);
  // To be called when the transaction of take or release was committed.
  void committed(i64 sweep, bool held);
  i64 now() const { return seams_.now_unix_ns(); }

 private:
  enum class Health { kAlive, kSilent, kDead };
  struct Row {
    LeaseHolder holder;
    std::string token;
    i64 beats = 0;
  };
  struct Look {
    std::string token;
    i64 beats = 0;
    double first_seen_s = 0;
  };
  std::optional<Row> read(Work&, i64 sweep);
  Health judge(const Row&, i64 sweep);
  Health judge_by_heartbeat(const Row&, i64 sweep);

  Seams seams_;
  bool network_;
  std::string pending_token_;
  std::map<i64, std::string> tokens_;  // of leases taken and not released
  std::map<i64, Look> looks_;          // at the beats of others
};

}  // namespace sweep::store
