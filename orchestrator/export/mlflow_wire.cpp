#include "orchestrator/export/mlflow_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::exports {
namespace {

constexpr std::size_t kLongestKey = 250, kLongestParam = 6000, kLongestTag = 8000;

Json pair_of(const std::string& key, const std::string& value, std::size_t longest) {
  return {{"key", mlflow_key(key)}, {"value", cut_to(value, longest)}};
}

}  // namespace

std::string mlflow_key(const std::string& key) {
  constexpr std::size_t kDigest = 8;
  constexpr std::string_view kGood = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-. ";
  std::string out;
  for (std::size_t from = 0; from <= key.size();) {
    const auto end = std::min(key.find('/', from), key.size());
    std::string part = key.substr(from, end - from);
    for (char& c : part)
      if (kGood.find(c) == std::string_view::npos) c = '_';
    if (part.empty() || part == "." || part == "..") part = "_";
    out += (from > 0 ? "/" : "") + part;
    from = end + 1;
  }
  if (out == key && key.size() <= kLongestKey) return out;
  return cut_to(std::move(out), kLongestKey - kDigest - 1) + '_' + name_hash(key).substr(0, kDigest);
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

std::vector<Json> mlflow_metrics(const TrackerRun& run, i64 revision, bool with_history) {
  std::vector<Json> out;
  for (const auto& [key, value] : run.metrics)
    if (value.is_number()) out.push_back(mlflow_metric(key, value.get<double>(), run.ended_unix_s, revision));
  if (!with_history) return out;
  for (const HistoryPoint& point : run.history)
    for (const auto& [key, value] : point.values)
      out.push_back(mlflow_metric(key, value, point.unix_s, point.step));
  return out;
}

i64 mlflow_revision(const TrackerRun& run, const nlohmann::json& data) {
  std::map<std::string, double> own;
  for (const auto& [key, value] : run.metrics)
    if (value.is_number()) own[mlflow_key(key)] = value.get<double>();
  i64 last = 0;
  bool differs = false;
  if (const auto kept = data.find("metrics"); kept != data.end())
    for (const auto& m : *kept) {
      const auto it = own.find(text_of(m, "key"));
      if (it == own.end() || !m.contains("step") || !m["step"].is_number_integer()) continue;
      last = std::max(last, m["step"].get<i64>());
      differs = differs || !m.contains("value") || m["value"] != it->second;
    }
  return last + (differs ? 1 : 0);
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
