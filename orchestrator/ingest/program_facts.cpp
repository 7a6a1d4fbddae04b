#include "orchestrator/ingest/program_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "schema/log_numbers.h"

namespace sweep::ingest {
namespace {

constexpr i64 kMostCounted = i64{1} << 50;  // limit of one rank, so that sums stay in range

i64 plausible_count(i64 n) {
  return std::clamp<i64>(n, 0, kMostCounted);
}

void add_log(ProgramFacts& facts, const LogFindings& log) {
  facts.patterns = true;
  facts.log_lines += plausible_count(log.lines);
  facts.unread_bytes += plausible_count(log.unread_bytes);
  for (const std::string_view name : kLogNumbers)
    if (const auto found = log.matches.find(std::string(name)); found != log.matches.end())
      facts.matches[found->first] += plausible_count(found->second);
}

bool has_timed_step(const RankRecord& record) {
  return std::ranges::any_of(record.samples, [](const StepSample& s) { return !s.warmup && s.step_ns > 0; });
}

bool is_silent(const RankRecord& record) {
  return record.effective.report == "none" || record.effective.report == "from_log";
}

std::string of_the_log(const ProgramFacts& facts) {
  std::string found;
  for (const auto& [name, lines] : facts.matches)
    found += fmt::format("{}{} in {}", found.empty() ? "" : ", ", name, lines);
  std::string out = fmt::format(
      "`log_patterns` found no time of a step in {} lines of its log (lines with a number: {}): a step is a "
      "line "
      "in which step_ms, step_s or steps_per_s matches; for one number of the whole run there are "
      "mean_step_ms, "
      "mean_step_s and mean_steps_per_s (docs/trainers.md)",
      facts.log_lines, found);
  if (facts.unread_bytes > 0)
    out += fmt::format("; {} bytes of the log were cut before they were read", facts.unread_bytes);
  return out;
}

// Empty: of all ranks, and of the only optimizer.
std::string whose_steps(const ProgramFacts& facts, i64 processes) {
  std::string out;
  if (facts.timed_ranks != processes) out = fmt::format("{} of {} ranks", facts.timed_ranks, processes);
  if (facts.other_steps > 0)
    out += fmt::format(
        "{}the first optimizer that stepped; others made {} steps beside its {}: call "
        "sweep_trial.watch(model, optimizer) in the script to choose another",
        out.empty() ? "" : ", ", facts.other_steps, facts.steps);
  return out;
}

}  // namespace

ProgramFacts program_facts(const Attempt& attempt, const AttemptReports& t) {
  ProgramFacts out;
  for (const auto& [rank, record] : t.records) {
    if (!attempt.starts(rank)) continue;
    out.timed_ranks += has_timed_step(record) ? 1 : 0;
    out.memory = out.memory || record.peak_allocated_bytes || record.peak_reserved_bytes;
    const EffectiveSettings& used = record.effective;
    out.steps = std::max(out.steps, plausible_count(used.steps));
    out.other_steps = std::max(out.other_steps, plausible_count(used.other_steps));
    out.damaged_lines += plausible_count(used.damaged_lines);
    out.from_log = out.from_log || used.report == "from_log";
    if (record.ooms.value_or(0) > 0 && !out.out_of_memory) out.out_of_memory = rank;
    if (used.log) add_log(out, *used.log);
  }
  return out;
}

bool log_speaks_of_memory(const AttemptReports& t, i64 rank) {
  const auto record = t.records.find(rank);
  const auto exit = t.exits.find(rank);
  if (exit == t.exits.end() || (record != t.records.end() && !is_silent(record->second))) return false;
  const std::string& log = exit->second.log_tail;
  return log.find("OutOfMemoryError") != std::string::npos || log.find("out of memory") != std::string::npos;
}

std::string without_timings(const Attempt& attempt, const ProgramFacts& facts) {
  const MeasurePlan& plan = attempt.measure;
  std::string out = "the program ended with code 0";
  if (attempt.is_rehearsal() && facts.from_log)
    out +=
        "; its log's times are those of this machine's clock, not of phantom GPUs, and are left out: steps "
        "that "
        "sweep_trial reports have modelled times (docs/trainers.md)";
  else if (facts.from_log && facts.steps > plan.warmup_steps + plan.steps)
    out += fmt::format(
        "; the steps in its log end with number {}, and those of the trial are 1 to {}: of a run that is "
        "resumed leave the pattern `step` out, so that steps are counted",
        facts.steps, plan.warmup_steps + plan.steps);
  else if (facts.steps > 0)
    out += fmt::format(
        " after {} steps, and none of them was timed: {} for warm-up and {} timed ones were asked for. Raise "
        "its own "
        "number of steps, or lower `measure` (optimizer steps that a trainer skips are no steps)",
        facts.steps, plan.warmup_steps, plan.steps);
  else if (facts.patterns)
    out += "; " + of_the_log(facts);
  else
    out +=
        " and reported no step: call sweep_trial.watch(model, optimizer) in it, start it with `-m "
        "sweep_trial`, or "
        "describe its log with `log_patterns` (docs/trainers.md)";
  if (facts.damaged_lines > 0)
    out += fmt::format(
        "; {} lines of its report were skipped: each must be one JSON object with the members and types of "
        "docs/trainers.md",
        facts.damaged_lines);
  return out;
}

void add_program_evidence(Evidence& out, const Attempt& attempt, const AttemptReports& t,
                          const Result& result) {
  const bool ok = result.outcome == Outcome::kOk;
  if (!ok && result.outcome != Outcome::kInvalid) {
    out.log_speaks_of_memory = result.rank && log_speaks_of_memory(t, *result.rank);
    return;
  }
  const ProgramFacts facts = program_facts(attempt, t);
  if (facts.timed_ranks > 0) {
    out.steps_are_of = whose_steps(facts, attempt.processes());
    return;
  }
  if (ok) out.no_timings = without_timings(attempt, facts);
  out.found = ProgramFindings{.steps = facts.steps, .damaged_lines = facts.damaged_lines};
  if (!facts.patterns) return;
  out.found->log_lines = facts.log_lines, out.found->unread_bytes = facts.unread_bytes;
  out.found->matches = facts.matches;
}

}  // namespace sweep::ingest
