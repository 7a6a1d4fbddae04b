#include "worker/command/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sweep::command {
namespace {

i64 nanoseconds(const std::optional<double>& ms) {
  return ms ? static_cast<i64>(std::llround(*ms * 1e6)) : 0;
}

StepSample sample_of(const TrainerStep& step, const MeasurePlan& plan) {
  StepSample sample;
  sample.step = step.number - 1;
  sample.warmup = step.number <= plan.warmup_steps;
  sample.step_ns = nanoseconds(step.ms);
  sample.forward_ns = nanoseconds(step.forward_ms);
  sample.backward_ns = nanoseconds(step.backward_ms);
  sample.optimizer_ns = nanoseconds(step.optimizer_ms);
  sample.tokens = step.tokens.value_or(0);
  sample.loss = step.loss.value_or(0);  // 0 means not reported, as for the parts
  sample.alloc_retries = step.alloc_retries.value_or(0);
  return sample;
}

// A step whose length the trainer does not know is no sample. Where the log tells only the mean of the run, that
// is one timed step. In a rehearsal the log's times are those of this machine's clock, and no step is timed by them.
std::vector<StepSample> samples_of(const TrainerReport& report, const Attempt& attempt) {
  const MeasurePlan& plan = attempt.measure;
  std::vector<StepSample> out;
  if (attempt.is_rehearsal() && report.is_from_log()) return out;
  for (const TrainerStep& step : report.steps())
    if (step.ms && step.number <= plan.warmup_steps + plan.steps) out.push_back(sample_of(step, plan));
  if (auto mean = report.mean_step(); mean && (out.empty() || out.back().warmup)) {
    mean->number = plan.warmup_steps + 1;
    out.push_back(sample_of(*mean, plan));
  }
  return out;
}

void say(RankRecord& record, Outcome outcome, std::string message) {
  record.outcome = outcome;
  record.message = std::move(message);
}

std::string how(const TrainerProcess::End& end) {
  if (end.signal) return fmt::format("the command was ended by signal {}", *end.signal);
  return fmt::format("the command ended with exit code {}", end.exit_code.value_or(-1));
}

// A rank of a launcher whose process ended without a word failed by itself, at that time. Where no process did, or
// this rank's spoke, another process of the node failed, and its own rank says why.
void blame(RankRecord& record, const ProgramEnd& program) {
  if (!program.vanished_unix_ns) {
    say(record, Outcome::kCrash, how(program.end));
    record.consequential = !program.own;
    return;
  }
  say(record, Outcome::kCrash,
      fmt::format(
          "its process was gone before its launcher was, and had reported no error: it was killed, or left "
          "without Python's clean-up ({})",
          how(program.end)));
  record.ended_unix_ns = *program.vanished_unix_ns;
}

}  // namespace

Phase phase_of(const TrainerReport& report, const MeasurePlan& plan) {
  if (report.error() ? report.error()->after_end : report.has_ended()) return Phase::kReport;
  const i64 done = report.last_step();
  if (done == 0 || report.phase() == Phase::kReport) return report.phase();
  return done < plan.warmup_steps ? Phase::kWarmup : Phase::kStep;
}

bool is_complete(const TrainerReport& report, const MeasurePlan& plan) {
  return report.has_ended() && report.last_step() >= plan.warmup_steps + plan.steps;
}

void conclude(RankRecord& record, const Attempt& attempt, const TrainerReport& report,
              const ProgramEnd& program) {
  const MeasurePlan& plan = attempt.measure;
  record.phase = phase_of(report, plan);
  record.step = std::max<i64>(report.last_step() - 1, 0);
  record.samples = samples_of(report, attempt);
  const TrainerReport::Memory memory = report.memory();
  record.peak_allocated_bytes = memory.peak_allocated_bytes;
  record.peak_reserved_bytes = memory.peak_reserved_bytes;
  record.alloc_retries = memory.alloc_retries;
  record.ooms = memory.ooms;
  // The allocator's retries since warm-up; a trainer that counts them step by step says so itself.
  const bool counted =
      std::ranges::any_of(report.steps(), [](const TrainerStep& s) { return s.alloc_retries.has_value(); });
  if (!counted && !record.samples.empty())
    record.samples.back().alloc_retries = record.alloc_retries.value_or(0);
  if (program.own && program.end.peak_rss_bytes > 0) record.host_peak_rss_bytes = program.end.peak_rss_bytes;
  if (report.error() && !program.stopped) {
    const TrainerError& error = *report.error();
    say(record, error.outcome, error.message);
    record.oom_kind = error.oom_kind;
    record.oom_asked_bytes = error.asked_bytes;
    record.part = error.part;
    record.consequential = error.consequential;
    return;
  }
  // Libraries abort in their destructors after a run that was complete: it is measured all the same. A
  // launcher of several processes tells of such a signal by an exit code of its own.
  const bool ended_well = program.stopped || program.end.exit_code == 0 ||
                          (is_complete(report, plan) && (program.end.signal || program.launches_others));
  if (!ended_well) return blame(record, program);
  if (const auto world = report.identity().world; world && *world != attempt.trial.world())
    return say(record, Outcome::kInvalid,
               fmt::format("the program ran as {} process{}, and the trial has {} ranks", *world,
                           *world == 1 ? "" : "es", attempt.trial.world()));
  record.outcome = Outcome::kOk;
  record.phase = Phase::kDone;
}

i64 failed_at(const TrainerError& error, i64 began_unix_ns, i64 read_unix_ns) {
  const i64 said = error.unix_ns.value_or(read_unix_ns);
  return said >= began_unix_ns && said <= read_unix_ns ? said : read_unix_ns;
}

}  // namespace sweep::command
