#include "orchestrator/run/guide.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/plan/planner.h"

namespace sweep::run {
namespace {

std::optional<double> predicted_rate(const PlanEntry& entry) {
  if (!entry.predicted.step_ms || *entry.predicted.step_ms <= 0) return {};
  const Trial& t = entry.trial;
  const double tokens = static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len);
  return 1e3 * tokens / *entry.predicted.step_ms / static_cast<double>(t.world());
}

double fit_chance(const PlanEntry& entry) {
  const auto share = plan::memory_share(entry);
  return share ? search::chance_to_fit(*share, 1) : search::kUnknownFit;
}

// By tokens per second and rank; of a program that reports step times alone, by steps per second.
double rate_of(const Metrics& m) {
  if (m.tokens_per_s_gpu) return *m.tokens_per_s_gpu;
  return m.step_ms && *m.step_ms > 0 ? 1e3 / *m.step_ms : 0;
}

search::Standing standing_of(const ResultRow& row) {
  if (row.state == State::kPending) return search::Standing::kWaiting;
  if (row.state != State::kFinished) return search::Standing::kRunning;
  if (row.outcome == Outcome::kOom) return search::Standing::kOutOfMemory;
  return row.outcome == Outcome::kOk && rate_of(row.metrics) > 0 ? search::Standing::kMeasured
                                                                 : search::Standing::kFailed;
}

}  // namespace

Expected<void> Guide::read_plan() {
  if (!plan_.empty()) return {};
  auto all = context_.store.plan(context_.settings.sweep);
  if (!all) return tl::unexpected(all.error());
  for (PlanEntry& entry : *all) {
    places_[entry.id] = plan_.size();
    plan_.push_back(std::move(entry));
  }
  return {};
}

Expected<std::vector<search::Candidate>> Guide::candidates() {
  SWEEP_TRY(read_plan());
  const auto rows = context_.store.results(context_.settings.sweep);
  if (!rows) return tl::unexpected(rows.error());
  std::vector<search::Candidate> out(plan_.size());
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    out[i].trial = &plan_[i].trial;
    out[i].predicted_rate = predicted_rate(plan_[i]);
    out[i].fit_chance = fit_chance(plan_[i]);
    out[i].standing = search::Standing::kFailed;
  }
  waiting_ = 0;
  for (const ResultRow& row : *rows) {
    const auto place = places_.find(row.trial_id);
    if (place == places_.end()) continue;
    search::Candidate& c = out[place->second];
    c.standing = standing_of(row);
    c.rate = c.standing == search::Standing::kMeasured ? rate_of(row.metrics) : 0;
    c.alloc_retries = row.metrics.alloc_retries.value_or(0);
    c.tried = row.attempts > 0;
    waiting_ += c.standing == search::Standing::kWaiting;
  }
  return out;
}

Expected<void> Guide::rule_out(const std::vector<search::RuledOut>& trials) {
  if (trials.empty()) return {};
  std::vector<store::NotRun> rows;
  std::map<std::string, i64> reasons;
  for (const auto& each : trials) {
    rows.push_back({plan_[each.candidate].id, each.rule, each.reason});
    ++reasons[each.rule + ": " + each.reason];
  }
  SWEEP_TRY(context_.store.rule_out(context_.settings.sweep, rows));
  waiting_ -= static_cast<i64>(rows.size());
  for (const auto& [reason, count] : reasons)
    SWEEP_TRY(context_.note(
        "strategy", fmt::format("{} {} not run; {}", count, count == 1 ? "trial is" : "trials are", reason)));
  return {};
}

Expected<std::vector<PlanEntry>> Guide::choose() {
  const auto known = candidates();
  if (!known) return tl::unexpected(known.error());
  const auto decision = search::decide(*known, context_.settings.strategy);
  SWEEP_TRY(rule_out(decision.ruled_out));
  for (const auto& note : decision.notes) {
    if (note == told_) continue;
    SWEEP_TRY(context_.note("strategy", note));
    told_ = note;
  }
  std::vector<PlanEntry> out;
  for (const std::size_t i : decision.next) out.push_back(plan_[i]);
  return out;
}

std::vector<store::Demand> Guide::demand(const std::vector<PlanEntry>& chosen) const {
  const double further = static_cast<double>(std::min(waiting_, context_.settings.strategy.max_trials));
  std::vector<store::Demand> out;
  for (const PlanEntry& entry : chosen) {
    auto group = std::ranges::find_if(out, [&](const store::Demand& each) {
      return each.hardware == entry.trial.hardware && each.nodes == entry.trial.nodes;
    });
    if (group == out.end()) {
      out.push_back({entry.trial.hardware, entry.trial.nodes});
      group = std::prev(out.end());
    }
    const double seconds = entry.predicted.seconds.value_or(0);
    group->gpus_per_node = std::max(group->gpus_per_node, entry.trial.gpus_per_node);
    group->longest_s = std::max(group->longest_s, seconds);
    group->predicted_s = std::max(group->predicted_s, further * group->longest_s);
    group->unpredicted += !entry.predicted.seconds;
    ++group->trials;
  }
  std::ranges::stable_sort(out, std::greater(), &store::Demand::nodes);
  return out;
}

}  // namespace sweep::run
