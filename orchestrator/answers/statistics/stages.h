// Stages: what each change of a grid's `stages:` is worth, on top of those before it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

// One stage of a series. Factors are above 1 where the metric became better.
struct StageResult {
  std::string name;
  std::string change;  // the axes that differ from the stage before, in short; of the first stage: empty
  const ResultRow* row = nullptr;
  std::optional<double> value;        // value of the metric; absent: the trial has none
  std::optional<double> over_before;  // factor over the last stage before it that has a value
  std::optional<double> over_first;   // factor over the first stage that has a value
};

// The stages of trials that differ in nothing else.
struct StageSeries {
  std::string name;  // values of the axes in which series differ; empty: there is one series
  std::vector<StageResult> stages;
};

// Series in the order of the grid; none where no row has a stage. `metric` has a better and a worse.
std::vector<StageSeries> stage_series(std::span<const ResultRow> rows, const Field& metric);

}  // namespace sweep::answers
