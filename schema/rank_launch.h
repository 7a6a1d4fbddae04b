// How an agent starts one rank, by exec or through the zygote. The same fields either way, so both give the
// same records.
//
//   exec:    sweep-rank run --launch '<RankLaunch as JSON>'
//   zygote:  sweep-rank zygote
//
// The zygote communicates on file descriptor 3, a SOCK_SEQPACKET pair made by the agent, one JSON object per
// message: it sends a ZygoteAnswer, first that it is ready, then one to each RankLaunch. It forks twice, so that the
// agent, a subreaper, adopts the rank and waits for it; it sends the rank's pid once the process group is set. End of
// file on 3 ends the zygote.
//
// Either way the rank: leads or joins process group `pgid` (0: it becomes leader of a new one), sets
// PDEATHSIG to SIGKILL after the last fork and checks that the agent is still alive, appends stdout and
// stderr to its log file, maps its progress page (created by the agent, sizeof(ProgressPage) zero bytes),
// runs, writes its RankRecord, exits 0 when the record is written, whatever the outcome. A rank that cannot
// read its attempt exits with kNoAttempt, one whose record the disk does not take with kNoRoom.
#pragma once
#include "base/expected.h"
#include "schema/records.h"

namespace sweep {

inline constexpr int kNoAttempt = 2, kNoRoom = 74;

// The exit code of a rank that tried to write its record.
inline int exit_code_of(const Expected<void>& written) {
  if (written) return 0;
  const ErrorKind kind = written.error().kind;
  return kind == ErrorKind::kDiskFull || kind == ErrorKind::kUnwritable ? kNoRoom : 1;
}

}  // namespace sweep
