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
  std::string what;  // follows "rank N"
  std::optional<OomKind> oom_kind;
  std::optional<i64> asked_bytes;
  bool consequential = false;
  std::string part;  // of an oom
};

std::string describe_record(const RankRecord&);
std::string describe_exit(const RankExit&);
std::string sentence(const Cause&);

// What an agent's evidence names: why it ended the attempt, the rank, and that rank's phase. Where ranks' flight
// recorders tell who waits for whom, that comes first. Each may be missing.
struct AgentWord {
  std::string why;
  std::optional<i64> rank;
  std::optional<Phase> phase;
};
AgentWord agent_word(const AttemptEnd&);

// "GPU GPU-5a.. of n1 (rank 3) reported Xid 79: the GPU has fallen off the bus". All texts bounded.
std::string describe_gpu_error(const GpuError&);

// Every step trains on the same batch, so the loss must fall. Absent: it does. The mean over ranks of a
// repeat's last step may exceed that of its first by 0.1 % in fp32 and 1 % in bf16 (whose mantissa resolves
// 0.4 %).
std::optional<Cause> check_losses(const Attempt&, const AttemptReports&);

// JSON object: cause, cause_rank, phase, testimonies (how many of what), log_tail of the cause, dirt, and where each
// rank was: in hang, or of a crash in ranks.
std::string evidence(const AttemptReports&, const Result&);

}  // namespace sweep::ingest
