#include "schema/ranking.h"

namespace sweep {

bool may_be_best(const ResultRow& row) {
  return row.state == State::kFinished && row.outcome == Outcome::kOk && !row.metrics.steps_saved;
}

bool ranks_before(Better better, double value, std::string_view id, double other, std::string_view other_id) {
  if (value != other) return better == Better::kLower ? value < other : value > other;
  return id < other_id;
}

bool goes_before(Better better, const ResultRow& row, double value, const ResultRow& other, double of_other) {
  if (may_be_best(row) != may_be_best(other)) return may_be_best(row);
  return ranks_before(better, value, row.trial_id, of_other, other.trial_id);
}

bool is_one_attempt(const ResultRow& a, const ResultRow& b) {
  return a.trial_id == b.trial_id && a.finished_unix_ns && a.finished_unix_ns == b.finished_unix_ns &&
         (a.attempts == 0) != (b.attempts == 0);
}

std::string ranked_metrics() {
  std::string out;
  for (const Column& c : columns())
    if (c.better != Better::kNone) out.append(out.empty() ? "" : ", ").append(c.key);
  return out;
}

}  // namespace sweep
