// Lease: the row that says who runs a sweep, and the judgement whether that holder is alive.
#pragma once
#include <map>
#include <set>

#include "orchestrator/store/db.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

// This process: host, boot id, pid with its namespace and start time, and the Slurm job that it is part of.
LeaseHolder this_process();
// Field 22 of /proc/PID/stat; absent when the process is gone or only a zombie is left of it; kHiddenStart when it is there
// and /proc hides it from us (hidepid).
std::optional<i64> living_pid_start(i64 pid);
inline constexpr i64 kHiddenStart = -1;

// When this machine was started, by its wall clock as it is now.
i64 boot_unix_ns();

class Leases {
 public:
  Leases(StoreDependencies dependencies, bool network)
      : dependencies_(std::move(dependencies)), network_(network) {}

  // The holder that keeps us from taking it; nullopt: we took it.
  std::optional<LeaseHolder> take(Transaction&, i64 sweep, const Claim&);
  void beat(Transaction&, i64 sweep);
  void release(Transaction&, i64 sweep);
  // The holder, unless it is known to be gone.
  std::optional<LeaseHolder> holder(Transaction&, i64 sweep, const Claim& known = {});
  bool lost(i64 sweep) const { return lost_.contains(sweep); }
  // Refuses the transaction when our lease was lost or another holds the sweep.
  void guard(Transaction&, i64 sweep);
  // Refuses when our lease was lost; one that holds none may go on.
  void refuse_if_lost(Transaction& work, i64 sweep) {
    if (tokens_.contains(sweep)) guard(work, sweep);
  }
  // The same as guard, but also refuses if we hold no lease.
  void require(Transaction&, i64 sweep);
  bool held_by_other(Transaction&, i64 sweep);
  // Is called when the transaction of take or release was committed.
  void committed(i64 sweep, bool held);
  i64 now() const { return dependencies_.now_unix_ns(); }

 private:
  struct Look {
    std::string token;
    i64 beats = 0;
    double since_s = 0;    // nothing has changed since then
    bool changed = false;  // a heartbeat came after the first look
  };
  std::optional<LeaseHolder> read(Transaction&, i64 sweep);
  void judge(LeaseHolder&, i64 sweep, const Claim&);
  Process process_of(const LeaseHolder&) const;

  StoreDependencies dependencies_;
  bool network_;
  std::string pending_token_;
  std::map<i64, std::string> tokens_;  // tokens of leases taken and not released
  std::map<i64, Look> looks_;          // looks at the beats of others
  std::set<i64> lost_;                 // sweeps whose lease was taken from us
};

}  // namespace sweep::store
