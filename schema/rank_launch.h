// How an agent starts one rank, by exec or through the zygote. The same fields either way, so both give the
// same records.
//
//   exec:    sweep-rank run --launch '<RankLaunch as JSON>'
//   zygote:  sweep-rank zygote
//
// The zygote communicates on file descriptor 3, a SOCK_SEQPACKET pair made by the agent, one JSON object per
// message. It first sends {"ready": true, "version": v}. A request is a RankLaunch; the answer is {"pid": n}
// or {"error": text}. It forks twice, so that the agent, a subreaper, adopts the rank and waits for it; it
// sends the rank's pid once the process group is set. End of file on 3 ends the zygote.
//
// Either way the rank: leads or joins process group `pgid` (0: it becomes leader of a new one), sets
// PDEATHSIG to SIGKILL after the last fork and checks that the agent is still alive, appends stdout and
// stderr to its log file, maps its progress page (created by the agent, sizeof(ProgressPage) zero bytes),
// runs, writes its RankRecord, exits 0 when the record is written, whatever the outcome. A rank that cannot
// read its attempt exits with kNoAttempt, one whose record the disk does not take with kNoRoom.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep {

inline constexpr int kNoAttempt = 2, kNoRoom = 74;

// The exit code of a rank that tried to write its record.
inline int exit_code_of(const Expected<void>& written) {
  if (written) return 0;
  const ErrorKind kind = written.error().kind;
  return kind == ErrorKind::kDiskFull || kind == ErrorKind::kUnwritable ? kNoRoom : 1;
}

struct RankLaunch {
  std::string attempt_dir;     // absolute; logs, records, progress pages (spool.h)
  std::string attempt_file;    // absolute; the Attempt, written by this node's agent alone
  std::string rendezvous_dir;  // absolute, on memory (/dev/shm/...), made and removed by the agent;
                               // FileStore, shm segments
  i64 rank = 0;
  i64 local_rank = 0;
  i64 world = 1;
  i64 agent_pid = 0;
  i64 pgid = 0;
  // These are set for an attempt that spans nodes, else empty:
  std::string store;      // absolute path of the agent's socket for the ranks' rendezvous (store_client.h)
  std::string address;    // this node's address, by which the ranks of other nodes reach it
  std::string interface;  // the network interface that has it
  // These are set for an attempt that others may run beside, else empty:
  std::string devices;  // CUDA_VISIBLE_DEVICES of the attempt on this node; local_rank counts in it
  std::string cores;    // the only ones the rank may use, as numbers with commas
  bool operator==(const RankLaunch&) const = default;
};

nlohmann::json to_json(const RankLaunch&);
Expected<RankLaunch> rank_launch_from(const nlohmann::json&);

}  // namespace sweep
