#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "orchestrator/answers/tables/explain.h"
#include "orchestrator/answers/tables/trial_command.h"

namespace sweep::answers {
namespace {

// Adds the sweep's events about its attempts; and, while it has no answer, about excluded hosts and about
// what waits.
Expected<void> add_events(ExplainView& view, store::Store& store, i64 sweep) {
  constexpr i64 kLookBack = 1000, kShown = 10;
  const bool waits = view.entry.admitted && !view.final_attempt;
  const auto concerns = [&](const SweepEvent& event) {
    if (waits && (event.kind == EventKind::kQuarantine || event.kind == EventKind::kRequestedAgain ||
                  event.kind == EventKind::kPending))
      return true;
    return std::ranges::any_of(view.attempts,
                               [&](const auto& attempt) { return event.attempt == attempt.id; });
  };
  SWEEP_GET(const auto events, store.events(sweep, kLookBack));
  for (const SweepEvent& event : events)
    if (concerns(event)) view.events.push_back(fmt::format("{}  {}", event.time, event.text));
  if (view.events.size() > kShown) view.events.erase(view.events.begin(), view.events.end() - kShown);
  return {};
}

// The attempt behind the answer, which `run --reuse` may have taken from another sweep.
Expected<void> add_final(ExplainView& view, store::Store& store, i64 sweep) {
  SWEEP_GET(const auto final_attempt, store.final_attempt(sweep, view.entry.id));
  view.final_attempt = final_attempt;
  if (!final_attempt) return {};
  const i64 id = *final_attempt;
  if (std::ranges::find(view.attempts, id, &ExplainAttempt::id) != view.attempts.end()) return {};
  SWEEP_GET(const auto result, store.result_of(id));
  SWEEP_GET(const auto from, store.sweep_of(id));
  view.attempts.push_back({id, State::kFinished, "reused from sweep " + from, result});
  return {};
}

}  // namespace

Expected<ExplainView> explain_view(store::Store& store, i64 sweep, const std::string& id_prefix) {
  SWEEP_GET(const auto id, store.find_trial(sweep, id_prefix));
  SWEEP_GET(const auto plan, store.plan(sweep));
  const auto entry = std::ranges::find(plan, id, &PlanEntry::id);
  if (entry == plan.end()) return fail("trial {} is not in the plan", id);
  SWEEP_GET(const auto attempts, store.attempts(sweep, id));
  ExplainView view{*entry, {}, std::nullopt, {}, command_of(*entry)};
  for (const auto& row : attempts) {
    SWEEP_GET(const auto result, store.result_of(row.id));
    view.attempts.push_back({row.id, row.state, row.allocation, result});
  }
  SWEEP_TRY(add_final(view, store, sweep));
  SWEEP_TRY(add_events(view, store, sweep));
  if (!view.final_attempt) return view;
  SWEEP_GET(auto nodes, node_times_of(store, sweep, id, entry->trial, *view.final_attempt));
  view.nodes = std::move(nodes);
  return view;
}

}  // namespace sweep::answers
