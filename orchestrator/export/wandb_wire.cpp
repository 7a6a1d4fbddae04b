#include "orchestrator/export/wandb_wire.h"

#include <fmt/format.h>

#include <cmath>

namespace sweep::exports {

std::string wandb_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return Json(value).dump();
}

std::string wandb_object(const WandbItems& items) {
  std::string out = "{";
  for (const auto& [key, json] : items) {
    if (out.size() > 1) out += ',';
    out += Json(key).dump() + ':' + json;
  }
  return out + '}';
}

WandbItems wandb_config(const TrackerRun& run) {
  WandbItems items;
  for (const auto& [key, value] : run.params) items.emplace_back(key, value.dump());
  return items;
}

WandbItems wandb_history(const HistoryPoint& point) {
  WandbItems items{{"_step", std::to_string(point.step)},
                   {"_timestamp", wandb_number(point.unix_s)},
                   {"_runtime", wandb_number(point.runtime_s)}};
  for (const auto& [key, value] : point.values) items.emplace_back(key, wandb_number(value));
  return items;
}

WandbItems wandb_summary(const TrackerRun& run) {
  WandbItems items;
  for (const auto& [key, value] : run.metrics) items.emplace_back(key, value.dump());
  items.emplace_back("outcome", Json(to_string(run.outcome)).dump());
  if (!run.reason.empty()) items.emplace_back("reason", Json(run.reason).dump());
  if (!run.history.empty())
    for (auto& last : wandb_history(run.history.back())) items.push_back(std::move(last));
  return items;
}

std::vector<std::string> wandb_tags(const TrackerRun& run) {
  std::vector<std::string> out{std::string(to_string(run.outcome)), "sweep"};
  if (run.rehearsed) out.emplace_back("rehearsed");
  return out;
}

int wandb_exit_code(const TrackerRun& run) {
  return run.outcome == Outcome::kOk ? 0 : 1;
}

Expected<void> check_wandb_project(const std::string& name) {
  if (name.empty() || name.size() > 128 || name.find_first_of("/\\#?%:") != std::string::npos)
    return fail(
        fmt::format("the W&B project '{}': 1 to 128 characters are taken, none of / \\ # ? % :", name));
  return {};
}

}  // namespace sweep::exports
