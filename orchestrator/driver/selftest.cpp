#include "orchestrator/driver/selftest.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::driver {
namespace {

constexpr double kPredictedSeconds = 5;
const MeasurePlan kMeasure{0, 3, 1};  // three steps, none of them to warm up

void append_once(std::vector<std::string>& all, const std::vector<std::string>& sentences) {
  for (const auto& sentence : sentences)
    if (std::ranges::find(all, sentence) == all.end()) all.push_back(sentence);
}

void keep_largest(double& kept, std::optional<double> value) {
  kept = std::max(kept,
                  value && !std::isnan(*value) ? *value : 1e30);  // a NaN is no small distance
}

Expected<std::optional<SelfTestOutcome>> outcome_of(store::Store& store, i64 sweep, const std::string& id) {
  SWEEP_GET(const auto final, store.final_attempt(sweep, id));
  if (!final) return std::optional<SelfTestOutcome>();
  const auto result = store.result_of(*final);
  const auto reports = store.records_of(*final);
  if (!result) return tl::unexpected(result.error());
  if (!reports) return tl::unexpected(reports.error());
  if (!*result) return std::optional<SelfTestOutcome>();
  SelfTestOutcome found;
  found.outcome = (*result)->outcome, found.reason = (*result)->reason;
  bool first = true;
  if (found.outcome == Outcome::kOk)
    for (const auto& record : reports->records) add_rank(found, record, std::exchange(first, false));
  SWEEP_GET(auto hosts, hosts_of(store, sweep, id, *final));
  found.hosts = std::move(hosts);
  return std::optional<SelfTestOutcome>(std::move(found));
}

}  // namespace

void add_rank(SelfTestOutcome& found, const RankRecord& record, bool first) {
  const Proof answer = record.effective.proof.value_or(Proof());
  const double before = found.gradient;
  keep_largest(found.loss, answer.loss);
  keep_largest(found.gradient, answer.gradient);
  keep_largest(found.value, answer.value);
  if (found.gradient > before && record.effective.proof) found.worst = answer.worst;
  found.bytes_exact = first ? answer.exact : found.bytes_exact && answer.exact;
  if (const auto dry = static_cast<double>(answer.dry_bytes.value_or(0)); dry > 0)
    found.bytes_off = std::max(found.bytes_off, std::abs(static_cast<double>(answer.peak_bytes) - dry) / dry);
  append_once(found.bytes, answer.bytes);
  append_once(found.traffic, answer.traffic);
  append_once(found.collectives, answer.collectives);
}

bool passed(const SelfTestOutcome& found, const Tolerance& allowed) {
  return found.outcome == Outcome::kOk && found.loss <= allowed.loss && found.gradient <= allowed.gradient &&
         found.value <= allowed.value && found.bytes.empty() && found.traffic.empty() &&
         found.collectives.empty();
}

Expected<SelfTestReport> run_selftests(const SelfTestRequest& request, const std::string& name,
                                       const std::vector<Trial>& trials, const MakeObserver& make_observer) {
  const auto entries = built_in_entries(trials, kPredictedSeconds);
  SweepOptions options;
  options.measure = kMeasure;
  auto run = run_built_in(request, name, entries, std::move(options), make_observer);
  if (!run) return tl::unexpected(run.error());
  SelfTestReport out;
  for (const PlanEntry& entry : entries) {
    SWEEP_GET(auto found, outcome_of(run->driver.store(), run->driver.sweep().id, entry.id));
    if (found) out.outcomes.emplace(entry.id, std::move(*found));
  }
  if (run->report.end.end != run::End::kDone) out.why = run->report.end.why;
  if (!run->report.hosts.empty()) out.hosts = run->report.hosts.rbegin()->second;
  return out;
}

}  // namespace sweep::driver
