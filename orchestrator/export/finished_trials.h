// FinishedTrials: the trials of a sweep that have ended, as trackers take them. Only their rows are kept: a trial's history is
// read when its turn comes.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/export/tracker.h"

namespace sweep::exports {

// Trackers are told this of the sweep.
struct ExportedSweep {
  std::string name, question, grid_text;
  i64 created_unix_ns = 0;
};

class FinishedTrials {
 public:
  // Reads the steps of a row's trial.
  using StepsOf = std::function<Expected<std::vector<StepValues>>(const ResultRow&)>;

  // All rows of the sweep; `names`: what people call each of them.
  FinishedTrials(ExportedSweep, const std::vector<ResultRow>&, std::span<const std::string> names, StepsOf);

  i64 size() const { return static_cast<i64>(rows_.size()); }
  i64 left_out() const { return left_out_; }  // trials that were pruned, or have not ended
  Expected<TrackerRun> run(i64 index) const;
  Expected<TrackerSweep> as_whole() const;

 private:
  ExportedSweep sweep_;
  std::vector<std::pair<std::string, ResultRow>> rows_;
  i64 left_out_ = 0;
  StepsOf steps_of_;
};

}  // namespace sweep::exports
