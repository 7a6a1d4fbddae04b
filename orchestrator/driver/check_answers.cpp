#include "orchestrator/driver/check_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "orchestrator/answers/json_values.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::driver {
namespace {

using nlohmann::json;

constexpr const char* kRow = "{:<16} {:<10} {:>8} {:>8} {:>9}  {:<8} {:<8} {:<11} {}{}\n";

bool ended_ok(const StrategyCheck& row) {
  return row.found && row.found->outcome == Outcome::kOk;
}

const char* backend_name(const Trial& trial) {
  return kBackendNames[static_cast<std::size_t>(backend_of(trial))];
}

std::string distance(const StrategyCheck& row, double value) {
  return ended_ok(row) ? fmt::format("{:.1e}", value) : "-";
}

std::string list_cell(const StrategyCheck& row, const std::vector<std::string>& faults) {
  if (!ended_ok(row)) return "-";
  return faults.empty() ? "equal" : "WRONG";
}

std::string bytes_cell(const StrategyCheck& row, const SelfTestOutcome& found) {
  const std::string said = list_cell(row, found.bytes);
  if (said != "equal" || found.bytes_exact) return said;
  return fmt::format("{:+.1f} %", 100 * found.bytes_off);
}

// Says what is wrong, in one sentence.
std::string why_of(const StrategyCheck& row, const std::string& ended) {
  if (!row.selftest.trial) return row.selftest.why;
  if (!row.found) return ended.empty() ? "no result" : ended;
  if (!ended_ok(row)) return fmt::format("{}: {}", to_string(row.found->outcome), row.found->reason);
  for (const auto* faults : {&row.found->bytes, &row.found->traffic, &row.found->collectives})
    if (!faults->empty()) return faults->front();
  return row.passed ? "" : fmt::format("not equal to the step of one rank, most of all {}", row.found->worst);
}

const char* result_of(const StrategyCheck& row) {
  return !row.selftest.trial ? "not run" : row.passed ? "passed" : "failed";
}

json row_json(const StrategyCheck& row, const std::string& ended) {
  json out{{"strategy", row.selftest.strategy}, {"result", result_of(row)}, {"why", why_of(row, ended)}};
  if (const auto& trial = row.selftest.trial) {
    out["backend"] = backend_name(*trial);
    out["trial"] = trial_id(*trial);
  }
  if (ended_ok(row))
    out.update({{"loss", row.found->loss},
                {"gradient", row.found->gradient},
                {"parameter", row.found->value},
                {"bytes_exact", row.found->bytes_exact},
                {"bytes_off", row.found->bytes_off},
                {"bytes", row.found->bytes},
                {"traffic", row.found->traffic},
                {"collectives", row.found->collectives},
                {"hosts", row.found->hosts}});
  return out;
}

}  // namespace

bool SelfTestAnswer::passed() const {
  return std::ranges::all_of(strategies, [](const auto& row) { return row.passed || !row.selftest.trial; });
}

SelfTestAnswer selftest_answer(std::vector<SelfTestTrial> asked, SelfTestReport report) {
  SelfTestAnswer out{{}, std::move(report.why)};
  for (auto& selftest : asked) {
    out.strategies.push_back({std::move(selftest), std::nullopt, false});
    StrategyCheck& row = out.strategies.back();
    const auto& trial = row.selftest.trial;
    if (!trial) continue;
    if (const auto found = report.outcomes.find(trial_id(*trial)); found != report.outcomes.end())
      row.found = found->second;
    row.passed = row.found && passed(*row.found, tolerance_of(*trial));
  }
  return out;
}

std::string selftest_text(const SelfTestAnswer& answer) {
  std::string out = fmt::format(kRow, "strategy", "backend", "loss", "gradient", "parameter", "bytes",
                                "traffic", "collectives", "result", "");
  for (const auto& row : answer.strategies) {
    const auto& trial = row.selftest.trial;
    const SelfTestOutcome f = row.found.value_or(SelfTestOutcome{});
    const std::string why = why_of(row, answer.ended);
    out += fmt::format(kRow, row.selftest.strategy, trial ? backend_name(*trial) : "-", distance(row, f.loss),
                       distance(row, f.gradient), distance(row, f.value), bytes_cell(row, f),
                       list_cell(row, f.traffic), list_cell(row, f.collectives),
                       trial && !row.passed ? "FAILED" : result_of(row), why.empty() ? "" : ": " + why);
  }
  return out;
}

json selftest_json(const SelfTestAnswer& answer) {
  json list = json::array();
  for (const auto& row : answer.strategies) list.push_back(row_json(row, answer.ended));
  return {{"version", kVersion}, {"build", kBuild}, {"strategies", std::move(list)}};
}

SelfTestResults results_of(const SelfTestAnswer& answer, const std::string& date) {
  SelfTestResults out;
  for (const auto& row : answer.strategies)
    if (row.found)
      out[{row.selftest.strategy, backend_name(*row.selftest.trial)}] = {
          date, row.passed, row.found->hosts, std::string(kVersion) + " " + kBuild};
  return out;
}

bool healthy(std::span<const Finding> findings) {
  return std::ranges::none_of(findings, [](const Finding& each) { return each.health == Health::kBad; });
}

std::string findings_text(std::span<const Finding> findings) {
  std::size_t width = 0;
  for (const auto& each : findings) width = std::max(width, each.what.size());
  std::string out;
  for (const auto& each : findings)
    out += fmt::format("{:<8} {:<{}}  {}\n", to_string(each.health), each.what, width, each.detail);
  return out;
}

json doctor_json(std::span<const Finding> findings, const SelfTestResults& here) {
  json found = json::array(), strategies = json::array();
  for (const auto& each : findings)
    found.push_back({{"what", each.what}, {"health", to_string(each.health)}, {"detail", each.detail}});
  for (const auto& strategy : all_strategies())
    for (std::size_t g = 0; g < kBackends; ++g) {
      const auto own = here.find({std::string(strategy.name), kBackendNames[g]});
      const bool known = own != here.end();
      strategies.push_back({{"strategy", strategy.name},
                            {"backend", kBackendNames[g]},
                            {"tested", answers::text_or_null(std::string(strategy.tested[g]))},
                            {"here", known ? json(own->second.passed ? "passed" : "failed") : json(nullptr)},
                            {"here_date", known ? json(own->second.date) : json(nullptr)}});
    }
  return {{"healthy", healthy(findings)}, {"findings", found}, {"strategies", strategies}};
}

}  // namespace sweep::driver
