// clang-format off
// Decides the outcome of an attempt by what ranks and agent reported, from typed records only. The first rule
// that applies decides; the numbers are those of docs/outcomes.md:
//
//  1. The agent lost a node: node_lost. What ranks of other nodes report follows from that.
//  2. The agent ended the attempt on purpose (cancelled, agent_stopping), or had no time to start it (no_time): cancelled,
//     whatever the ranks reported meanwhile.
//  3. The agent saw a hang or a timeout, and the failure of rule 5 is oom, unsupported or invalid: that. The rank's peers
//     then hang only because it is gone.
//  4. The agent saw a hang or a timeout, without such a failure: that.
//  5. The earliest failure that does not follow from the end of another rank. The rank's own record counts, else how its
//     process ended. A process that the agent ended is never the cause.
//  6. The ranks could not be started: crash, in phase start, so that it is tried again as a crash is.
//  7. The earliest failure that follows from the end of another rank, else a rank that reported nothing: crash.
//  8. No step was recorded: invalid. Of a command: no rank reported a timed step; oom where the allocator found no
//     memory. In a rehearsal of a command, no timed step and either such an oom, or no memory and no steps in its log.
//  9. A loss is not finite or rises by more than the tolerance: invalid. Of a command: a loss is not finite.
//     A calibration is asked neither 8 nor 9, a rehearsal of our own step no 8, and no rehearsal 9.
// 10. Every rank reported ok: ok.
//
// A crash, hang or timeout on a GPU whose hardware failed is a lost node. A rehearsal that the kernel ends for memory is
// invalid: the memory is that of the machine that rehearses, and says nothing of the trial's nodes.
// clang-format on
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "orchestrator/ingest/evidence.h"
#include "orchestrator/ingest/ingest.h"
#include "orchestrator/ingest/program_facts.h"
#include "schema/xid.h"

namespace sweep::ingest {
namespace {

// Stamps of clocks that are unset or wrong sort last.
i64 plausible(i64 unix_ns) {
  return unix_ns > 0 ? unix_ns : std::numeric_limits<i64>::max();
}

Cause from_record(const RankRecord& r) {
  Cause cause{r.outcome,       r.rank, plausible(r.ended_unix_ns), r.phase, "", r.oom_kind, r.oom_asked_bytes,
              r.consequential, r.part};
  if (r.outcome == Outcome::kOom && !cause.oom_kind) cause.oom_kind = OomKind::kDevice;
  cause.what = describe_record(r);
  return cause;
}

// How a process ended that left no failure record of its own. nullopt: in order, or ended by the agent.
std::optional<Cause> from_exit(const RankExit& e, const RankRecord* record, bool rehearsal) {
  if (e.killed_by_agent || (record && record->outcome == Outcome::kOk)) return std::nullopt;
  Cause cause{
      Outcome::kCrash, e.rank, plausible(e.ended_unix_ns), record ? record->phase : std::nullopt, "", {}, {},
      false,           {}};
  cause.what = describe_exit(e);
  if (e.oom_killed && rehearsal) {
    cause.outcome = Outcome::kInvalid;
    cause.what += ": this machine has too little memory for the rehearsal; use one with more";
  } else if (e.oom_killed) {
    cause.outcome = Outcome::kOom, cause.oom_kind = OomKind::kHost;
  }
  return cause;
}

struct Causes {
  // The earliest that does not follow from the end of another rank.
  std::optional<Cause> first;
  // The earliest of the others.
  std::optional<Cause> consequential;
};

void keep_earliest(std::optional<Cause>& kept, Cause next) {
  if (!kept || std::pair(next.unix_ns, next.rank) < std::pair(kept->unix_ns, kept->rank))
    kept = std::move(next);
}

Causes find_causes(const Attempt& attempt, const AttemptReports& t) {
  const i64 world = attempt.trial.world();
  Causes causes;
  for (const auto& [rank, record] : t.records) {
    if (rank < 0 || rank >= world || record.outcome == Outcome::kOk) continue;
    keep_earliest(record.consequential ? causes.consequential : causes.first, from_record(record));
  }
  for (const auto& [rank, exit] : t.exits) {
    if (rank < 0 || rank >= world) continue;
    const auto record = t.records.find(rank);
    const bool reported = record != t.records.end();
    // A record of failure counts more than the exit, unless the record only follows from the end of a peer
    // and the kernel ended the process for memory.
    if (reported && record->second.outcome != Outcome::kOk &&
        !(record->second.consequential && exit.oom_killed))
      continue;
    if (auto cause = from_exit(exit, reported ? &record->second : nullptr, attempt.is_rehearsal()))
      keep_earliest(causes.first, std::move(*cause));
  }
  return causes;
}

bool outranks_the_agent(const Cause& cause) {
  return cause.outcome == Outcome::kOom || cause.outcome == Outcome::kUnsupported ||
         cause.outcome == Outcome::kInvalid;
}

std::optional<Cause> rank_without_record(const Attempt& attempt, const AttemptReports& t) {
  for (i64 index = 0; index < attempt.processes(); ++index) {
    const i64 rank = attempt.rank_of(index);
    if (t.records.contains(rank)) continue;
    Cause cause{Outcome::kCrash, rank, 0, {}, "", {}, {}, false, {}};
    cause.what = t.exits.contains(rank) ? "was ended before it left a record" : "reported nothing at all";
    return cause;
  }
  return std::nullopt;
}

// The agent's conclusion, with its own reason if it stated one.
Cause by_agent(Outcome outcome, const AttemptEnd& end, const std::string& otherwise) {
  const AgentReason reason = agent_reason(end);
  Cause cause{outcome, reason.rank, end.ended_unix_ns, reason.phase, "", {}, {}, false, {}};
  cause.what = reason.why.empty() ? otherwise : reason.why;
  return cause;
}

// The error of a GPU that decides: the first of its hardware, else the first of the rank that failed.
const GpuError* deciding_gpu_error(const AttemptEnd& end, std::optional<i64> rank) {
  const auto find = [&](auto&& decides) {
    const auto found = std::ranges::find_if(end.gpu_errors, decides);
    return found == end.gpu_errors.end() ? nullptr : &*found;
  };
  if (const auto* broken = find([](const GpuError& e) { return is_hardware_fault(e.xid); })) return broken;
  return find([&](const GpuError& e) { return rank && e.rank == rank; });
}

// A GPU that failed is the machine's fault, whatever the ranks reported. What a program did to its GPU
// explains a crash.
void consider_gpu_errors(Cause& cause, const AttemptReports& t) {
  if (cause.outcome != Outcome::kCrash && cause.outcome != Outcome::kHang &&
      cause.outcome != Outcome::kTimeout)
    return;
  const GpuError* error = deciding_gpu_error(*t.end, cause.rank);
  if (error == nullptr) return;
  if (!is_hardware_fault(error->xid)) {
    cause.what += "; " + describe_gpu_error(*error);
    return;
  }
  cause.outcome = Outcome::kNodeLost;
  cause.what = describe_gpu_error(*error);
  if (!error->rank || error->rank == cause.rank) return;
  cause.rank = error->rank;
  const auto record = t.records.find(*error->rank);
  cause.phase = record == t.records.end() ? std::nullopt : record->second.phase;
}

std::optional<Cause> decide(const Attempt& attempt, const AttemptReports& t) {
  const EndCause ended_by = t.end->cause;
  if (ended_by == EndCause::kNoTime)
    return by_agent(Outcome::kCancelled, *t.end, "not started: the allocation ends before it would");
  if (ended_by == EndCause::kCancelled || ended_by == EndCause::kAgentStopping)
    return by_agent(Outcome::kCancelled, *t.end,
                    ended_by == EndCause::kCancelled ? "cancelled while it ran" : "the agent was stopping");
  if (ended_by == EndCause::kNodeLost) return by_agent(Outcome::kNodeLost, *t.end, "a node of it was lost");
  const Causes causes = find_causes(attempt, t);
  if (ended_by == EndCause::kHang || ended_by == EndCause::kTimeout) {
    if (causes.first && outranks_the_agent(*causes.first)) return causes.first;
    if (ended_by == EndCause::kHang)
      return by_agent(Outcome::kHang, *t.end, "no progress within the deadline of its phase");
    return by_agent(Outcome::kTimeout, *t.end,
                    fmt::format("not done within {} s", attempt.deadlines.total_s));
  }
  if (causes.first) return causes.first;
  if (ended_by == EndCause::kStartFailed) {
    Cause cause = by_agent(Outcome::kCrash, *t.end, "its ranks could not be started");
    cause.phase = Phase::kStart;
    return cause;
  }
  if (causes.consequential) return causes.consequential;
  if (auto cause = rank_without_record(attempt, t)) return cause;
  if (attempt.trial.workload == Workload::kCalibrate) return std::nullopt;  // it trains nothing
  // Phantom kernels compute nothing, so a rehearsal's losses are no losses.
  return attempt.is_rehearsal() ? check_rehearsal(attempt, t) : check_losses(attempt, t);
}

// Text decides nothing: it says how the end would be told.
void hint_at_memory(Cause& cause, const Attempt& attempt, const AttemptReports& t) {
  const bool crash = cause.outcome == Outcome::kCrash && attempt.trial.workload == Workload::kCommand;
  if (!crash || !cause.rank || !log_speaks_of_memory(t, *cause.rank)) return;
  cause.what +=
      "; its log speaks of memory, but no outcome is decided from text: a script that is started with "
      "`-m sweep_trial` reports such an end as oom";
}

i64 finished(const AttemptReports& t) {
  i64 last = t.end ? t.end->ended_unix_ns : 0;
  if (last > 0) return last;
  for (const auto& [rank, record] : t.records) last = std::max(last, record.ended_unix_ns);
  for (const auto& [rank, exit] : t.exits) last = std::max(last, exit.ended_unix_ns);
  return last;
}

}  // namespace

Result judge(const Attempt& attempt, const AttemptReports& t) {
  Result result;
  result.attempt = attempt.id;
  result.trial_id = attempt.trial_id;
  result.finished_unix_ns = finished(t);
  std::optional<Cause> cause;
  if (t.end)
    cause = decide(attempt, t);
  else
    cause = Cause{Outcome::kNodeLost, {}, 0, {}, "the agent's last record is missing", {}, {}, false, {}};
  if (!cause) {
    result.outcome = Outcome::kOk;
    result.phase = Phase::kDone;
  } else {
    if (t.end) consider_gpu_errors(*cause, t);
    hint_at_memory(*cause, attempt, t);
    result.outcome = cause->outcome;
    result.oom_kind = cause->oom_kind;
    result.rank = cause->rank;
    result.phase = cause->phase;
    result.reason = sentence(*cause);
    result.metrics.oom_asked_bytes = cause->asked_bytes;
    if (!cause->part.empty()) result.metrics.oom_part = cause->part;
  }
  result.evidence = evidence(attempt, t, result);
  return result;
}

}  // namespace sweep::ingest
