// TrackerRun: one finished trial as experiment trackers take it: parameters, final numbers, a history by
// step, and how it ended. What was not measured is not in it. The same result gives the same run, id
// included, on every machine.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "schema/result_row.h"

namespace sweep::exports {

using Json = nlohmann::ordered_json;

// Values may be NaN or infinite; each tracker has its own spelling for that.
struct HistoryPoint {
  i64 step = 0;  // 0, 1, ... over all repeats
  double unix_s = 0, runtime_s = 0;
  std::vector<std::pair<std::string, double>> values;
};

struct TrackerRun {
  std::string id;    // 16 hexadecimal digits, of the result: a trial measured again is another run
  std::string name;  // name for people
  std::string sweep, question, trial;
  Outcome outcome = Outcome::kOk;
  std::string reason;
  bool rehearsed = false;                             // the run was on phantom GPUs
  std::vector<std::pair<std::string, Json>> params;   // trial, model, axes that are set, derived labels
  std::vector<std::pair<std::string, Json>> metrics;  // numbers that were measured; texts among them
  std::vector<HistoryPoint> history;
  double begun_unix_s = 0, ended_unix_s = 0;
  std::string record;  // the whole row as JSON, for people to download
};

// The values of a step for the history, times in nanoseconds.
struct StepValues {
  i64 step_ns = 0;
  std::vector<std::pair<std::string, double>> values;
};

// A row with a result. The steps have no stamps of their own: they are computed back from when the trial
// ended.
TrackerRun tracker_run(const ResultRow&, std::vector<StepValues> steps, const std::string& name,
                       const std::string& question);

bool is_exported(const ResultRow&);  // finished, and not only pruned by the plan

// The first `most` bytes of a text without cutting a character in two.
std::string cut_to(std::string text, std::size_t most);

}  // namespace sweep::exports
