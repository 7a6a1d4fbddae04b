// RankProcesses: the processes of this node's ranks of one attempt, and the process group that they share. It
// signals them, asks them for their flight recorders, and keeps how each ended. It starts none and decides
// nothing.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/expected.h"
#include "schema/node_part.h"
#include "worker/agent/evidence/rank_log.h"

namespace sweep::agent {

struct RankProcess {
  // Rank in the attempt.
  i64 rank = 0;
  // 0: not started.
  pid_t pid = 0;
  // The process id as seen from outside the PID namespace.
  i64 outside_pid = 0;
  // Its start worked or failed.
  bool answered = false;
  bool ended = false;
  bool killed_by_agent = false;
  bool oom_killed = false;
  // Whether it was asked for its flight recorder.
  bool asked = false;
  int status = 0;
  i64 ended_unix_ns = 0;
  std::unique_ptr<RankLog> log;
};

class RankProcesses {
 public:
  RankProcesses() = default;
  // Kills the group.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Entries of ranks that have not started; the ones before are forgotten.
  void reset(const NodePart&);
  void open_logs(const std::filesystem::path& attempt_dir, i64 limit_bytes);
  // A new process group, which exists until kill() and the end of its leader.
  Expected<void> make_group();
  pid_t group() const { return leader_; }

  std::vector<RankProcess>& all() { return ranks_; }
  const std::vector<RankProcess>& all() const { return ranks_; }
  bool all_answered() const;
  bool all_ended() const;
  // Inside and outside of the PID namespace.
  std::vector<i64> pids() const;
  // Whether it led the group: no signal is sent to that number any more.
  bool leader_ended(pid_t pid);
  // A rank that runs as this process; null: none.
  RankProcess* running_as(pid_t pid);

  // SIGTERM, and SIGCONT: a stopped rank handles SIGTERM only once it goes on.
  void terminate();
  void kill();
  // A byte into the pipe at which each rank with a flight recorder waits.
  void ask_for_flights(const std::filesystem::path& rendezvous);
  // Every rank that was asked and lives has written it.
  bool flights_written(const std::filesystem::path& attempt_dir) const;

 private:
  void mark_killed();

  std::vector<RankProcess> ranks_;
  // Sleeps, so that the group exists; 0: gone.
  pid_t leader_ = 0;
};

}  // namespace sweep::agent
