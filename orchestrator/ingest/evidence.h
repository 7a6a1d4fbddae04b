// The cause of a failure, in words and as stored evidence; and the check of losses. Private to ingest/.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/ingest/ingest.h"

namespace sweep::ingest {

struct Cause {
  Outcome outcome = Outcome::kCrash;
  std::optional<i64> rank;
  i64 unix_ns = 0;
  std::optional<Phase> phase;
  // Follows "rank N".
  std::string what;
  std::optional<OomKind> oom_kind;
  std::optional<i64> asked_bytes;
  bool consequential = false;
  // Of the step, where memory ran out.
  std::string part;
};

std::string describe_record(const RankRecord&);
// The last line of a log that says something, on one line and safe to print.
std::string last_line(std::string_view log);
std::string describe_exit(const RankExit&);
std::string sentence(const Cause&);

// What an agent's evidence names: why it ended the attempt, the rank, and that rank's phase. Where ranks'
// flight recorders show who waits for whom, that comes first. Each may be missing.
struct AgentReason {
  std::string why;
  std::optional<i64> rank;
  std::optional<Phase> phase;
};
AgentReason agent_reason(const AttemptEnd&);

// "GPU GPU-5a.. of n1 (rank 3) reported Xid 79: the GPU has fallen off the bus". All texts bounded.
std::string describe_gpu_error(const GpuError&);

// Every step trains on the same batch, so the loss must fall. Absent: it does. The mean over ranks of a
// repeat's last step may exceed that of its first by 0.1 % in fp32 and 1 % in bf16 (whose mantissa resolves
// 0.4 %). A command's loss must be finite, and some rank must have reported a timed step.
std::optional<Cause> check_losses(const Attempt&, const AttemptReports&);
// Of a rehearsal, whose losses are none: a command must have reported its memory, or a timed step.
std::optional<Cause> check_rehearsal(const Attempt&, const AttemptReports&);

// What is stored with the result: what decided it, and where each rank was. Of a command also what
// add_program_evidence() says.
Evidence evidence(const Attempt&, const AttemptReports&, const Result&);

}  // namespace sweep::ingest
