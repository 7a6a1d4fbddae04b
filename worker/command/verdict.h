// The rank's record, from a trainer's report and its process's end. Pure.
#pragma once
#include <optional>

#include "schema/attempt.h"
#include "worker/command/trainer_process.h"
#include "worker/command/trainer_report.h"

namespace sweep::command {

// How the program ended, as this rank knows.
struct ProgramEnd {
  TrainerProcess::End end;
  // Its process is this rank's own child; else the node's first rank started it.
  bool own = true;
  // It starts the processes of its node itself.
  bool launches_others = false;
  // It was ended on purpose, after the steps of the trial.
  bool stopped = false;
  // It reported an error and was ended because it did not leave by itself.
  bool lingered = false;
  // The process that reports as this rank, a child of the launcher, was gone before the launcher was, and had said
  // neither an error nor its end: no later than this.
  std::optional<i64> vanished_unix_ns;
};

// Outcome, message, phase, samples and memory of the record. Where each number comes from: docs/trainers.md.
void conclude(RankRecord&, const Attempt&, const TrainerReport&, const ProgramEnd&);
// It reported its end and all of the trial's steps.
bool is_complete(const TrainerReport&, const MeasurePlan&);
// When a rank failed: as its trainer says, but neither before the rank began nor after the line was read. A
// launcher ends the other ranks, and then itself, before all of their lines are read; the first to fail is the
// cause.
i64 failed_at(const TrainerError&, i64 began_unix_ns, i64 read_unix_ns);
// The phase a trainer is in, by what it reported; of an error, the phase in which it happened.
Phase phase_of(const TrainerReport&, const MeasurePlan&);

}  // namespace sweep::command
