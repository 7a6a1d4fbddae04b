// The cause of a failure, in words and as stored evidence; who waits for whom; and the check of losses. Private to ingest/.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "orchestrator/ingest/ingest.h"
#include "schema/records.h"

namespace sweep::ingest {

// Standstill: which rank waits for which among ranks that hang, from the flight recorders that the agent read
// (its evidence, "ranks"). Pure; its input is not trusted.
struct Standstill {
  // The one that the others wait for; nullopt: all have entered the operation, and it does not end.
  std::optional<i64> rank;
  // A sentence.
  std::string what;
};
// nullopt: no rank reported that it waits in an operation.
std::optional<Standstill> standstill(std::span<const RankPosition> ranks);

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
  // The part of the step in which memory ran out.
  std::string part;
};

std::string describe_record(const RankRecord&);
// The last line of a log that says something, on one line and safe to print.
std::string last_line(std::string_view log);
std::string describe_exit(const RankExit&);
std::string sentence(const Cause&);

// The reason in an agent's evidence: why it ended the attempt, the rank, and that rank's phase. If ranks'
// flight recorders show who waits for whom, that comes first. Each may be missing.
struct AgentReason {
  std::string why;
  std::optional<i64> rank;
  std::optional<Phase> phase;
};
AgentReason agent_reason(const AttemptEnd&);

// "GPU GPU-5a.. of n1 (rank 3) reported Xid 79: the GPU has fallen off the bus". All texts bounded.
std::string describe_gpu_error(const GpuError&);

// Every step trains on the same batch, so the loss must fall. nullopt: it does. The mean over ranks of a
// repeat's last step may exceed that of its first by 0.1 % in fp32 and 1 % in bf16 (whose mantissa resolves
// 0.4 %). A command's loss must be finite, and some rank must have reported a timed step.
std::optional<Cause> check_losses(const Attempt&, const AttemptReports&);
// Checks a rehearsal, which has no losses: a command must have reported its memory, or a timed step.
std::optional<Cause> check_rehearsal(const Attempt&, const AttemptReports&);

// The evidence that is stored with the result: what decided it, and where each rank was. For a command it has
// the findings of add_program_evidence() too.
Evidence evidence(const Attempt&, const AttemptReports&, const Result&);

}  // namespace sweep::ingest
