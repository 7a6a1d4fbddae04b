#include "orchestrator/run/leaders.h"

#include <algorithm>
#include <cmath>

#include "orchestrator/search/candidate.h"
#include "schema/ranking.h"

namespace sweep::run {
namespace {

double tokens_of_a_rank(const Trial& t) {
  return static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len) /
         static_cast<double>(t.world());
}

// A command may process other numbers of tokens than its axes say: then its step times cannot be compared.
bool counts_as_its_axes(const Trial& t, const Metrics& m) {
  constexpr double kRounding = 0.01;
  if (!m.tokens_per_s_gpu || !m.step_ms) return true;
  return std::abs(*m.tokens_per_s_gpu * *m.step_ms / 1e3 / tokens_of_a_rank(t) - 1) < kRounding;
}

}  // namespace

Expected<void> Leaders::read() {
  read_ = true;
  SWEEP_GET(const auto rows, context_.store.results(context_.settings.sweep));
  for (const ResultRow& row : rows)
    if (may_be_best(row)) add(row.trial, row.outcome, row.metrics);
  return {};
}

Expected<std::optional<double>> Leaders::bound_for(const Trial& trial) {
  if (!context_.settings.measure.early_stop) return std::optional<double>();
  if (!read_) SWEEP_TRY(read());
  const auto leader = rates_.find(question_of(trial));
  if (leader == rates_.end()) return std::optional<double>();
  return std::optional(1e3 * search::useful_tokens_of_a_rank(trial) / leader->second);
}

void Leaders::add(const Trial& trial, Outcome outcome, const Metrics& m) {
  if (!may_be_best(State::kFinished, outcome, m) || !counts_as_its_axes(trial, m)) return;
  if (!m.step_ms_ci_high || *m.step_ms_ci_high <= 0) return;
  const double rate = 1e3 * search::useful_tokens_of_a_rank(trial) / *m.step_ms_ci_high;
  double& best = rates_[question_of(trial)];
  best = std::max(best, rate);
}

}  // namespace sweep::run
