#include "orchestrator/export/mlflow_wire.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <map>

#include "schema/frame.h"

namespace sweep::exports {
namespace {

constexpr std::size_t kLongestKey = 250, kLongestParam = 6000, kLongestTag = 8000;

Json pair_of(const std::string& key, const std::string& value, std::size_t longest) {
  return {{"key", mlflow_key(key)}, {"value", cut_to(value, longest)}};
}

}  // namespace

std::string mlflow_key(std::string key) {
  for (char& c : key) {
    const auto u = static_cast<unsigned char>(c);
    const bool good =
        u >= 0x80 || std::isalnum(u) || std::string_view("_-. /").find(c) != std::string_view::npos;
    if (!good) c = '_';
  }
  return cut_to(std::move(key), kLongestKey);
}

std::string mlflow_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

i64 unix_ms(double unix_s) {
  return std::llround(unix_s * 1000);
}

Json mlflow_metric(const std::string& key, double value, double unix_s, i64 step) {
  Json out = {{"key", mlflow_key(key)}, {"value", value}, {"timestamp", unix_ms(unix_s)}, {"step", step}};
  if (std::isnan(value)) out["value"] = "NaN";
  if (std::isinf(value)) out["value"] = value > 0 ? "Infinity" : "-Infinity";
  return out;
}

std::vector<Json> mlflow_params(const TrackerRun& run) {
  std::vector<Json> out;
  for (const auto& [key, value] : run.params) out.push_back(pair_of(key, mlflow_text(value), kLongestParam));
  return out;
}

Json mlflow_tags(const TrackerRun& run) {
  Json out = Json::array();
  const auto add = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) out.push_back(pair_of(key, value, kLongestTag));
  };
  add("sweep.sweep", run.sweep);
  add("sweep.trial", run.trial);
  add("sweep.outcome", std::string(to_string(run.outcome)));
  add("sweep.reason", run.reason);
  if (run.rehearsed) add("sweep.rehearsed", "true");
  for (const auto& [key, value] : run.metrics)
    if (value.is_string()) add("sweep." + key, value.get<std::string>());
  return out;
}

std::vector<Json> mlflow_metrics(const TrackerRun& run, i64 revision) {
  std::vector<Json> out;
  for (const auto& [key, value] : run.metrics)
    if (value.is_number()) out.push_back(mlflow_metric(key, value.get<double>(), run.ended_unix_s, revision));
  if (revision > 0) return out;  // the history is what was measured: it never changes
  for (const HistoryPoint& point : run.history)
    for (const auto& [key, value] : point.values)
      out.push_back(mlflow_metric(key, value, point.unix_s, point.step));
  return out;
}

std::string mlflow_status(Outcome outcome) {
  if (outcome == Outcome::kOk) return "FINISHED";
  return outcome == Outcome::kCancelled ? "KILLED" : "FAILED";
}

std::string mlflow_difference(const TrackerRun& run, const nlohmann::json& data) {
  std::map<std::string, std::string> params;
  std::map<std::string, double> metrics;
  if (const auto kept = data.find("params"); kept != data.end())
    for (const auto& p : *kept) params[text_of(p, "key")] = text_of(p, "value");
  if (const auto kept = data.find("metrics"); kept != data.end())
    for (const auto& m : *kept)
      if (m.contains("value") && m["value"].is_number()) metrics[text_of(m, "key")] = m["value"];
  for (const Json& p : mlflow_params(run)) {
    const auto it = params.find(p["key"]);
    if (it == params.end() || it->second != p["value"].get<std::string>())
      return fmt::format("parameter {}: sent '{}', kept '{}'", p["key"].get<std::string>(),
                         p["value"].get<std::string>(), it == params.end() ? "nothing" : it->second);
  }
  for (const auto& [key, value] : run.metrics) {
    if (!value.is_number()) continue;
    const auto it = metrics.find(mlflow_key(key));
    if (it == metrics.end() || it->second != value.get<double>())
      return fmt::format("metric {}: sent {}, kept {}", key, value.dump(),
                         it == metrics.end() ? "nothing" : fmt::format("{}", it->second));
  }
  return "";
}

}  // namespace sweep::exports
