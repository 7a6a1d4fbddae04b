// Holder: who runs a sweep, what is known of whether it lives, and what follows from that. Pure.
#pragma once
#include <string>

#include "schema/trial.h"

namespace sweep::store {

inline constexpr double kBeatEverySeconds = 5;      // a holder's heartbeats
inline constexpr double kQuietSeconds = 15;         // three of them
inline constexpr double kLeaseSilenceSeconds = 60;  // seconds without a heartbeat: the holder may be dead

// The holder's process, as this host sees it.
enum class Process {
  kAlive,
  kGone,
  kRebooted,  // another boot id under the same host name, on a network filesystem: two hosts may share a name
  // Another boot id on a filesystem of one machine: the disk came here from there, or it is shared in a way that
  // nobody knows of.
  kOtherMachine,
  kOutOfSight,
};
// Slurm's word on the job that the holder is part of.
enum class JobWord {
  kUnknown,  // it is part of none, or Slurm does not answer
  kAlive,    // the job runs, or ends just now
  kOver,     // the job has ended, and Slurm has seen its processes end
  kLost,  // the job is over, but its processes were not seen to end: its node failed, or Slurm has forgotten it
};
enum class Beat { kRecent, kQuiet, kSilent };
enum class LeaseStatus {
  kHeld,       // the sweep is being run, as far as is known
  kUncertain,  // silent for longer than the limit, and nothing says that it is gone: a person must decide
  kFree,       // the holder is gone
};

Beat beat_of(double silent_s);
// watched: the lease was looked at for kQuietSeconds here and no heartbeat came, whatever the clocks of two
// hosts say.
LeaseStatus lease_status_of(Process, JobWord, Beat, bool watched);

struct LeaseHolder {
  std::string host, boot_id;
  i64 pid = 0, pid_start = 0, heartbeat_unix_ns = 0;
  i64 slurm_job = 0;  // the job that it is part of; 0: none
  std::string slurm_cluster{};
  i64 pid_namespace = 0;  // namespace in which its pid counts; 0: not known
  // The rest is what is known of it now.
  std::string token{};
  i64 beats = 0;
  Process process = Process::kOutOfSight;
  JobWord job = JobWord::kUnknown;
  Beat beat = Beat::kRecent;
  LeaseStatus status = LeaseStatus::kHeld;
  double silent_s = 0;      // since its last heartbeat
  bool watched = false;     // the last argument of lease_status_of()
  bool heartbeats = false;  // they come while this process looks
};

// Whether its process lives, on this host, and sends no heartbeat: most likely it was stopped (Ctrl-Z, SIGSTOP).
inline bool stands_still(const LeaseHolder& holder) {
  return holder.process == Process::kAlive && holder.beat == Beat::kSilent;
}

// The knowledge and wishes of a process that wants a lease, beyond what the store sees.
struct Claim {
  bool take_over = false;  // a person says that a silent holder is gone
  JobWord job = JobWord::kUnknown;
  std::string job_of{};  // the token of the lease that `job` is about
};

}  // namespace sweep::store
