// A run in MLflow's format: strings for parameters and tags, integers for stamps and steps, names for numbers
// that JSON lacks. MLflow answers 200 to other types and stores other values.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/export/tracker_run.h"

namespace sweep::exports {

inline constexpr const char* kMlflowKeyTag = "sweep.key";
inline constexpr std::size_t kMlflowMetrics = 1000, kMlflowParams = 100;  // limits of one request

// A name that every MLflow store takes: letters and digits of ASCII, _ - . space and /, no empty or dotted part of a path,
// at most 250. One that had to be changed ends in a digest, so that two names stay two.
std::string mlflow_key(const std::string& key);
std::string mlflow_text(const Json& value);
Json mlflow_metric(const std::string& key, double value, double unix_s, i64 step);

std::vector<Json> mlflow_params(const TrackerRun&);  // each is {key, value}
Json mlflow_tags(const TrackerRun&);
// Final numbers at step `revision`, then the history if it is wanted.
std::vector<Json> mlflow_metrics(const TrackerRun&, i64 revision, bool with_history);
// The step for the final numbers of a run that the server has: MLflow shows those of the largest step, and of one step
// the largest. The next step where the server's numbers are others.
i64 mlflow_revision(const TrackerRun&, const nlohmann::json& run_data);
std::string mlflow_status(Outcome);
i64 unix_ms(double unix_s);

// Says what the server lacks or has otherwise; empty: it has everything.
std::string mlflow_difference(const TrackerRun&, const nlohmann::json& run_data);

}  // namespace sweep::exports
