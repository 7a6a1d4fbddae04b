#include "orchestrator/run/guide.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/plan/planner.h"
#include "orchestrator/run/run_context.h"
#include "schema/audit.h"
#include "schema/ranking.h"

namespace sweep::run {
namespace {

constexpr std::size_t kReasonsTold = 3;

std::string not_run(i64 count) {
  return fmt::format("{} {} not run", count, count == 1 ? "trial is" : "trials are");
}

// One line for each reason; of many reasons one line in all, since `explain` has that of each trial.
Expected<void> note_rule(const RunContext& context, const std::string& rule,
                         const std::map<std::string, i64>& reasons) {
  if (reasons.size() > kReasonsTold) {
    i64 all = 0;
    for (const auto& [reason, count] : reasons) all += count;
    const auto& first = reasons.begin()->first;
    return context.note(EventKind::kStrategy, fmt::format("{}; {}: {} reasons, one of them: {}", not_run(all),
                                                          rule, reasons.size(), first));
  }
  for (const auto& [reason, count] : reasons)
    SWEEP_TRY(context.note(EventKind::kStrategy, fmt::format("{}; {}: {}", not_run(count), rule, reason)));
  return {};
}

// Stores trials that are not run because of what others showed as pruned, and tells people of them. Returns the ids of
// those that waited.
Expected<std::vector<std::string>> store_ruled_out(const RunContext& context,
                                                   const std::vector<store::NotRun>& trials) {
  std::vector<std::string> out;
  if (trials.empty()) return out;
  const auto stored = context.store.rule_out(context.settings.sweep, trials);
  if (!stored) return stored;
  std::map<std::string, std::map<std::string, i64>> reasons;  // reasons of each rule
  i64 audited = 0;
  for (const auto& each : trials) {
    if (std::ranges::find(*stored, each.trial_id) == stored->end()) continue;
    audited += each.audited;
    if (each.audited) continue;
    ++reasons[each.rule][each.reason];
    out.push_back(each.trial_id);
  }
  for (const auto& [rule, counts] : reasons) SWEEP_TRY(note_rule(context, rule, counts));
  if (audited > 0)
    SWEEP_TRY(
        context.note(EventKind::kStrategy, fmt::format("{} of the pruned trials {} all the same, as an audit",
                                                       audited, audited == 1 ? "runs" : "run")));
  return out;
}

// The rate is useful tokens per second and rank; for a program that reports step times alone, steps per second.
double rate_of(const Metrics& m) {
  if (const auto rate = useful_rate(m)) return *rate;
  return m.step_ms && *m.step_ms > 0 ? 1e3 / *m.step_ms : 0;
}

search::TrialStatus trial_status(State state, const ResultRow& row) {
  if (state == State::kPending) return search::TrialStatus::kWaiting;
  if (state != State::kFinished) return search::TrialStatus::kRunning;
  if (row.outcome == Outcome::kOom) return search::TrialStatus::kOutOfMemory;
  return row.outcome == Outcome::kOk && rate_of(row.metrics) > 0 ? search::TrialStatus::kMeasured
                                                                 : search::TrialStatus::kFailed;
}

}  // namespace

bool Guide::learns() const {
  const Strategy& strategy = context_.settings.strategy;
  return chooses() ||
         (!context_.settings.rehearse_most && (strategy.uses_history() || strategy.skips_recompute()));
}

Expected<void> Guide::begin() {
  if (!learns()) return {};
  auto plan = context_.store.plan(context_.settings.sweep);
  if (!plan) return tl::unexpected(plan.error());
  plan_ = std::move(*plan);
  SWEEP_GET(const auto rows, context_.store.results(context_.settings.sweep));
  SWEEP_GET(const auto retried, waiting_for_retry(rows));
  std::vector<search::Candidate> candidates;
  for (const PlanEntry& entry : plan_) {
    places_[entry.id] = candidates.size();
    candidates.push_back(search::candidate_of(entry, plan::memory_share(entry)));
    candidates.back().status = search::TrialStatus::kFailed;
  }
  for (const ResultRow& row : rows) {
    const auto place = places_.find(row.trial_id);
    if (place == places_.end()) continue;
    if (const auto known = known_of(row, place->second, retried.contains(row.trial_id)))
      static_cast<search::Known&>(candidates[place->second]) = *known;
  }
  learner_.emplace(std::move(candidates), context_.settings.strategy);
  if (chooses()) return {};
  const auto gone = rule_out(learner_->next().ruled_out);
  return gone ? Expected<void>() : tl::unexpected(gone.error());
}

bool Guide::is_too_large(const PlanEntry& entry) const {
  const Settings& settings = context_.settings;
  return settings.allocate_per_shape && settings.bounds.max_nodes > 0 &&
         entry.trial.nodes > settings.bounds.max_nodes;
}

// The trials whose last failure is not final yet. Those that a person opened again have no try that counts.
Expected<std::set<std::string>> Guide::waiting_for_retry(const std::vector<ResultRow>& rows) const {
  std::set<std::string> out;
  if (std::ranges::none_of(rows, [](const ResultRow& row) { return row.again.has_value(); })) return out;
  SWEEP_GET(const auto waiting, context_.store.pending(context_.settings.sweep, std::ssize(plan_)));
  for (const store::PendingTrial& each : waiting)
    if (each.attempts > 0) out.insert(each.entry.id);
  return out;
}

// nullopt: the learner is not told. A rate that a person wants measured again counts until the new one is there.
std::optional<search::Known> Guide::known_of(const ResultRow& row, std::size_t place, bool waits_for_retry) {
  apart_.erase(place), retries_.erase(place);
  const bool audited = is_audited(plan_[place]);
  const bool asked_for = row.again && !waits_for_retry;
  const State state = row.again.value_or(row.state);
  const bool apart = asked_for || is_too_large(plan_[place]);
  if ((audited || apart) && state == State::kPending) apart_.insert(place);
  if (audited || (asked_for && row.outcome != Outcome::kOk)) return {};
  search::Known out;
  out.status = trial_status(apart ? State::kFinished : state, row);
  if (row.again == State::kPending && !apart) {
    out.status = search::TrialStatus::kRunning;
    retries_.insert(place);
  }
  out.rate = out.status == search::TrialStatus::kMeasured ? rate_of(row.metrics) : 0;
  out.alloc_retries = row.metrics.alloc_retries.value_or(0);
  out.host_oom = row.oom_kind == OomKind::kHost;
  out.tried =
      row.attempts > 0 && out.status != search::TrialStatus::kWaiting;  // it waits: it was interrupted
  return out;
}

void Guide::started(const std::string& trial_id) {
  const auto place = places_.find(trial_id);
  if (place == places_.end() || apart_.erase(place->second) > 0) return;
  retries_.erase(place->second);
  learner_->started(place->second);
}

Expected<std::vector<std::string>> Guide::finished(const std::string& trial_id) {
  const auto place = places_.find(trial_id);
  if (place == places_.end()) return std::vector<std::string>();
  SWEEP_GET(const auto row, context_.store.result(context_.settings.sweep, trial_id));
  const bool chosen = learner_->runs(place->second);
  if (const auto known = row ? known_of(*row, place->second, chosen) : std::nullopt)
    learner_->finished(place->second, *known);
  return chooses() ? std::vector<std::string>() : rule_out(learner_->next().ruled_out);
}

Expected<std::vector<std::string>> Guide::rule_out(const std::vector<search::RuledOut>& trials) {
  std::vector<store::NotRun> rows;
  for (const auto& each : trials) {
    PlanEntry& entry = plan_[each.candidate];
    const bool audited =
        is_audited_rule(each.rule) && is_in_audit(entry.id, context_.settings.strategy.audit);
    rows.push_back({entry.id, each.rule, each.reason, audited});
    if (!rows.back().audited) continue;
    entry.rule = each.rule;
    apart_.insert(each.candidate);
  }
  return store_ruled_out(context_, rows);
}

// Trials that run only to check their pruning wait until the strategy has decided everything: they must not
// change what is decided.
Expected<std::vector<PlanEntry>> Guide::choose() {
  const auto decision = learner_->next();
  if (const auto gone = rule_out(decision.ruled_out); !gone) return tl::unexpected(gone.error());
  for (const auto& note : decision.notes) {
    if (note == told_) continue;
    SWEEP_TRY(context_.note(EventKind::kStrategy, note));
    told_ = note;
  }
  std::vector<PlanEntry> out;
  for (const std::size_t i : retries_) out.push_back(plan_[i]);
  for (const std::size_t i : decision.next) out.push_back(plan_[i]);
  if (learner_->waiting() == 0)
    for (const std::size_t i : apart_) out.push_back(plan_[i]);
  return out;
}

std::vector<store::Demand> Guide::demand(const std::vector<PlanEntry>& chosen) const {
  const double further =
      static_cast<double>(std::min(learner_->waiting(), context_.settings.strategy.max_trials));
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
