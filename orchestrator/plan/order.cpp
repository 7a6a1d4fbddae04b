// The order in which trials run when all of them do.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/plan/planner.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"

namespace sweep::plan {
namespace {

constexpr double kLast = std::numeric_limits<double>::infinity();

auto placement(const PlanEntry& e) {
  return std::tuple(!e.admitted, std::string_view(e.trial.hardware), e.trial.nodes, e.trial.gpus_per_node);
}

// Seconds per token of a step: trials of the same model and sequence length are compared by it.
double seconds_per_token(const PlanEntry& e) {
  const double step = e.predicted.step_ms.value_or(kLast);
  const double tokens = static_cast<double>(e.trial.global_batch_size) * static_cast<double>(e.trial.seq_len);
  return std::isnan(step) ? kLast : step / tokens;
}

auto question(const PlanEntry& e) {
  return std::tuple(placement(e), std::string_view(e.trial.model), e.trial.seq_len);
}

}  // namespace

void set_order(std::vector<PlanEntry>& entries) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rate_key = [&](std::size_t i) {
    return std::tuple(question(entries[i]), seconds_per_token(entries[i]), i);
  };
  std::ranges::sort(order, {}, rate_key);
  std::vector<std::size_t> rank(entries.size());
  for (std::size_t i = 1; i < order.size(); ++i)
    if (question(entries[order[i]]) == question(entries[order[i - 1]]))
      rank[order[i]] = rank[order[i - 1]] + 1;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const PlanEntry& e = entries[i];
    return std::tuple(placement(e), rank[i], e.predicted.seconds.value_or(kLast), i);
  });
  for (std::size_t i = 0; i < order.size(); ++i) entries[order[i]].order = static_cast<i64>(i);
}

std::optional<double> memory_share(const PlanEntry& entry) {
  const auto hardware = shape::find_hardware(entry.trial.hardware);
  if (!entry.predicted.bytes || !hardware || first_objection(entry.trial)) return {};
  const auto budget = predict::memory_budget(entry.trial, *hardware);
  if (!budget || *budget <= 0) return {};
  return shape::real(*entry.predicted.bytes) / *budget;
}

}  // namespace sweep::plan
