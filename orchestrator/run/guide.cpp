#include "orchestrator/run/guide.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/plan/planner.h"
#include "orchestrator/run/ruled_out.h"
#include "schema/audit.h"

namespace sweep::run {
namespace {

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
    out[i] = search::candidate_of(plan_[i], plan::memory_share(plan_[i]));
    out[i].standing = search::Standing::kFailed;
  }
  waiting_ = 0;
  audited_.clear();
  for (const ResultRow& row : *rows) {
    const auto place = places_.find(row.trial_id);
    if (place == places_.end()) continue;
    if (is_audited(plan_[place->second])) {
      if (row.state == State::kPending) audited_.push_back(place->second);
      continue;
    }
    search::Candidate& c = out[place->second];
    c.standing = standing_of(row);
    c.rate = c.standing == search::Standing::kMeasured ? rate_of(row.metrics) : 0;
    c.alloc_retries = row.metrics.alloc_retries.value_or(0);
    c.host_oom = row.oom_kind == OomKind::kHost;
    c.tried = row.attempts > 0;
    waiting_ += c.standing == search::Standing::kWaiting;
  }
  return out;
}

Expected<void> Guide::rule_out(const std::vector<search::RuledOut>& trials) {
  if (trials.empty()) return {};
  std::vector<store::NotRun> rows;
  for (const auto& each : trials) {
    PlanEntry& entry = plan_[each.candidate];
    rows.push_back(
        {entry.id, each.rule, each.reason, is_in_audit(entry.id, context_.settings.strategy.audit)});
    if (!rows.back().audited) continue;
    entry.rule = each.rule;
    audited_.push_back(each.candidate);
  }
  waiting_ -= static_cast<i64>(rows.size());
  const auto gone = store_ruled_out(context_, rows);
  return gone ? Expected<void>() : tl::unexpected(gone.error());
}

// What is run only to see whether it was pruned rightly waits until the strategy has decided everything: it
// must not change what is decided.
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
  if (waiting_ == 0)
    for (const std::size_t i : audited_) out.push_back(plan_[i]);
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
