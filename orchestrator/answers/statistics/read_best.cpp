// The answer `best` of a sweep, read from its database.
#include <algorithm>
#include <map>
#include <memory>

#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/store/store.h"
#include "schema/ranking.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

using ByTrial = std::map<std::string, Provenance>;

Expected<std::shared_ptr<const ByTrial>> provenance_of_winners(store::Store& store, i64 sweep,
                                                               std::span<const BestOfGroup> groups) {
  std::vector<std::string> ids;
  for (const auto& group : groups) {
    if (group.winner) ids.push_back(group.winner->trial_id);
  }
  SWEEP_GET(auto found, store.provenance(sweep, ids));
  auto out = std::make_shared<ByTrial>();
  for (Provenance& one : found) out->insert_or_assign(one.trial_id, std::move(one));
  return out;
}

Expected<BestSource> source_of(store::Store& store, const store::SweepRow& sweep, bool named) {
  BestSource out{.sweep = sweep.name};
  const auto all = store.sweeps();
  if (!all) return tl::unexpected<Error>(all.error());
  if (!named) out.chosen_of = static_cast<i64>(all->size());
  out.confirms = sweep.options.confirms;
  if (out.confirms.empty()) return out;
  const auto allocations = store.allocations(sweep.id);
  if (!allocations) return tl::unexpected<Error>(allocations.error());
  for (const auto& one : *allocations) {
    const auto results = store.results_in(one.id);
    if (!results) return tl::unexpected<Error>(results.error());
    out.allocations += *results > 0 ? 1 : 0;
  }
  return out;
}

}  // namespace

Expected<BestAnswer> read_best(store::Store& store, const store::SweepRow& sweep, BestOptions asked,
                               bool named) {
  BestAnswer out{.options = std::move(asked)};
  BestOptions& options = out.options;
  SWEEP_GET(auto source, source_of(store, sweep, named));
  options.source = std::move(source);
  SWEEP_GET(const auto columns, store.result_columns(sweep.id, best_columns_with_axes(options)));
  if (options.metric.empty()) options.metric = usual_metric(columns);
  out.differ = varying(columns);
  if (options.group_by.empty()) options.group_by = comparable_groups(out.differ);
  for (const auto& field : out.differ) options.form.swept.push_back(field.name());
  options.rehearsed = is_rehearsal(sweep.name);
  options.form.measure = measure_of(sweep.name, sweep.options);
  auto groups =
      best(columns, options, [&](std::span<const i64> entries) { return store.results_of(entries); });
  if (!groups) return tl::unexpected(groups.error());
  out.groups = std::move(*groups);
  const auto known = provenance_of_winners(store, sweep.id, out.groups);
  if (!known) return tl::unexpected(known.error());
  options.provenance_of = [known = *known](const ResultRow& row) {
    const auto it = known->find(row.trial_id);
    return it == known->end() ? nullptr : &it->second;
  };
  return out;
}

}  // namespace sweep::answers
