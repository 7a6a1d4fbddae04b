#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/quantiles.h"
#include "orchestrator/driver/earlier_results.h"
#include "orchestrator/search/residual_model.h"
#include "orchestrator/store/store.h"
#include "schema/command_spec.h"
#include "schema/rehearsal.h"

namespace sweep::driver {
namespace {

constexpr std::size_t kFewest = 5;          // a fit needs as many (predict/fit.h)
constexpr std::size_t kMost = 128;          // results of a kind: the model's work grows with their cube
constexpr std::size_t kMostRead = 1024;     // results of a sweep
constexpr std::size_t kAtOnce = 16 * 1024;  // entries that are compared with the results at a time

// Trials of one kind have one error of prediction: the hardware, and what runs on it.
struct Kind {
  std::string hardware;
  Workload workload = Workload::kStep;
  std::string script;
  auto operator<=>(const Kind&) const = default;
};
Kind kind_of(const Trial& t) {
  Kind out{t.hardware, t.workload, {}};
  if (t.workload == Workload::kCommand)
    if (const auto command = command_from(t.program)) out.script = script_of(command->argv);
  return out;
}

// Results of a kind, and by how much each is off: ln(measured / predicted).
struct Seen {
  std::vector<const MeasuredTrial*> results;
  std::vector<double> off;
};

std::map<Kind, Seen> seen_of(const std::set<Kind>& wanted, const MeasurePlan& plan,
                             const predict::Predictor& predictor, const std::vector<MeasuredTrial>& results) {
  std::map<Kind, Seen> out;
  std::set<std::string_view> known;
  for (const auto& result : results) {
    const Kind kind = kind_of(result.trial);
    if (!wanted.contains(kind) || !known.insert(result.id).second) continue;
    Seen& seen = out[kind];
    const auto predicted = predictor.predict(result.trial, plan).step_ms;
    if (!predicted || *predicted <= 0 || seen.results.size() >= kMost) continue;
    seen.results.push_back(&result), seen.off.push_back(std::log(result.step_ms / *predicted));
  }
  return out;
}

void correct(std::span<PlanEntry* const> entries, const Seen& seen, const MeasurePlan& plan) {
  std::vector<search::Candidate> candidates(seen.results.size() + entries.size());
  search::Group group;
  std::vector<search::Observation> observations;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool result = i < seen.results.size();
    candidates[i].trial = result ? &seen.results[i]->trial : &entries[i - seen.results.size()]->trial;
    if (result) observations.push_back({i, seen.off[i]});
    group.push_back(i);
  }
  const search::Features features(candidates, group);
  search::Likeness likeness(features);
  const search::ResidualModel model(likeness, std::move(observations));
  const auto off = model.at(std::span(group).subspan(seen.results.size()));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Prediction& p = entries[i]->predicted;
    const double before = *p.step_ms;
    p.step_ms = before * std::exp(off[i].mean);
    if (p.seconds) *p.seconds += (*p.step_ms - before) / 1e3 * plan.all_steps();
  }
}

std::string sentence(const Kind& kind, const Seen& seen) {
  return fmt::format(
      "{}: corrected by {} results of this database{}: they took {:.2f} times as long as predicted",
      kind.hardware, seen.results.size(), kind.script.empty() ? "" : " of " + kind.script,
      std::exp(*median(seen.off)));
}

Expected<void> add_results(store::Store& store, i64 sweep, std::vector<MeasuredTrial>& out) {
  const auto columns = store.result_columns(sweep, {{"outcome"}, {"step_ms"}});
  if (!columns) return tl::unexpected(columns.error());
  const auto& outcomes = columns->coded.at("outcome");
  const auto& times = columns->numbers.at("step_ms");
  std::vector<i64> entries;
  for (std::size_t i = columns->size(); i-- > 0 && entries.size() < kMostRead;) {
    const auto* word = std::get_if<std::string>(&outcomes.at(i));
    if (word != nullptr && *word == to_string(Outcome::kOk) && times[i] > 0)
      entries.push_back(columns->entry[i]);
  }
  SWEEP_GET(auto rows, store.results_of(entries));
  for (auto& row : rows) out.push_back({std::move(row.trial_id), std::move(row.trial), *row.metrics.step_ms});
  return {};
}

}  // namespace

Expected<std::vector<MeasuredTrial>> measured_trials(const std::string& db, const std::string& but_sweep) {
  std::vector<MeasuredTrial> out;
  SWEEP_GET(const auto file, store::read_sweeps(db));
  const auto& sweeps = file.sweeps;
  for (auto sweep = sweeps.rbegin(); sweep != sweeps.rend(); ++sweep) {
    if (sweep->name == but_sweep || is_rehearsal(sweep->name) || sweep->options.imported) continue;
    if (auto added = add_results(*file.store, sweep->id, out); !added) return tl::unexpected(added.error());
  }
  return out;
}

std::vector<std::string> correct_times(std::vector<PlanEntry>& entries, const MeasurePlan& plan,
                                       const predict::Predictor& predictor,
                                       const std::vector<MeasuredTrial>& results) {
  std::vector<std::string> said;
  if (results.size() < kFewest) return said;
  std::map<Kind, std::vector<PlanEntry*>> by_kind;
  for (PlanEntry& e : entries)
    if (e.admitted && e.predicted.step_ms.value_or(0) > 0) by_kind[kind_of(e.trial)].push_back(&e);
  std::set<Kind> wanted;
  for (const auto& [kind, own] : by_kind) wanted.insert(kind);
  const auto seen = seen_of(wanted, plan, predictor, results);
  for (const auto& [kind, own] : by_kind) {
    const auto found = seen.find(kind);
    if (found == seen.end() || found->second.results.size() < kFewest) continue;
    for (std::span<PlanEntry* const> left(own); !left.empty();
         left = left.subspan(std::min(kAtOnce, left.size())))
      correct(left.first(std::min(kAtOnce, left.size())), found->second, plan);
    said.push_back(sentence(kind, found->second));
  }
  return said;
}

}  // namespace sweep::driver
