// CostOrder: what a table of costs ranks by: tokens of documents, as useful_rate(), and the run with what is around its
// steps where the table has a column of its cost (run_cost_column()).
#pragma once
#include <span>

#include "orchestrator/answers/fields.h"
#include "schema/ranking.h"

namespace sweep::answers {

class CostOrder {
 public:
  explicit CostOrder(std::span<const ResultRow> rows) : whole_run_(run_cost_column(rows).has_value()) {}

  // Million tokens per hour.
  double rate(const ResultRow& row) const { return *row.metrics.mt_per_hour * counted(row); }
  // One that may be the best goes before one that was stopped early.
  bool cheaper(const ResultRow& a, const ResultRow& b) const {
    if (may_be_best(a) != may_be_best(b)) return may_be_best(a);
    const auto &x = a.metrics.cost_per_mt, &y = b.metrics.cost_per_mt;
    if (x && y && *x / counted(a) != *y / counted(b)) return *x / counted(a) < *y / counted(b);
    return ranks_before(Better::kHigher, rate(a), a.trial_id, rate(b), b.trial_id);
  }

 private:
  // The share of the tokens of its steps that a row gives in their time.
  double counted(const ResultRow& row) const {
    const Metrics& m = row.metrics;
    const bool slowed = whole_run_ && m.cost_per_mt && m.run_cost_per_mt;
    return m.useful_fraction.value_or(1) * (slowed ? *m.cost_per_mt / *m.run_cost_per_mt : 1);
  }
  bool whole_run_;
};

}  // namespace sweep::answers
