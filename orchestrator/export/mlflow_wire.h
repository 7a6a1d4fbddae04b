// A run in MLflow's format: strings for parameters and tags, integers for stamps and steps, names for numbers
// that JSON lacks. MLflow answers 200 to other types and stores other values.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/export/tracker_run.h"

namespace sweep::exports {

inline constexpr const char* kMlflowKeyTag = "sweep.key";
inline constexpr std::size_t kMlflowMetrics = 1000, kMlflowParams = 100;  // limits of one request

std::string mlflow_key(std::string key);  // characters that MLflow takes, at most 250
std::string mlflow_text(const Json& value);
Json mlflow_metric(const std::string& key, double value, double unix_s, i64 step);

std::vector<Json> mlflow_params(const TrackerRun&);  // each is {key, value}
Json mlflow_tags(const TrackerRun&);
// Final numbers at step `revision`, then the history.
std::vector<Json> mlflow_metrics(const TrackerRun&, i64 revision);
std::string mlflow_status(Outcome);
i64 unix_ms(double unix_s);

// Says what the server lacks or has otherwise; empty: it has everything.
std::string mlflow_difference(const TrackerRun&, const nlohmann::json& run_data);

}  // namespace sweep::exports
