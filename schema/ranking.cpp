#include "schema/ranking.h"

#include <algorithm>
#include <cmath>

namespace sweep {
namespace {

class RatesSeen {
 public:
  void add(const std::optional<double>& tokens, const std::optional<double>& useful_fraction,
           const std::optional<double>& step) {
    tokens_ |= tokens.has_value(), times_ |= step.has_value();
    padding_ |= useful_fraction && *useful_fraction < 1;
  }
  std::string usual_metric() const {
    if (padding_) return "useful_tokens_per_s_gpu";
    return !tokens_ && times_ ? "step_ms" : "tokens_per_s_gpu";
  }

 private:
  bool tokens_ = false, padding_ = false, times_ = false;
};

}  // namespace

bool may_be_best(State state, Outcome outcome, const Metrics& metrics) {
  return state == State::kFinished && outcome == Outcome::kOk && !metrics.steps_saved;
}

bool may_be_best(const ResultRow& row) {
  return may_be_best(row.state, row.outcome, row.metrics);
}

std::vector<bool> may_be_best(const ResultColumns& columns) {
  const CodedColumn &state = columns.coded.at("state"), &outcome = columns.coded.at("outcome");
  const std::vector<double>& saved = columns.numbers.at("steps_saved");
  const auto place_of = [](const CodedColumn& column, auto word) {
    const Value wanted = std::string(to_string(word));
    return std::ranges::find(column.values, wanted) - column.values.begin();
  };
  const auto finished = place_of(state, State::kFinished), ok = place_of(outcome, Outcome::kOk);
  std::vector<bool> out(columns.size());
  for (std::size_t row = 0; row < out.size(); ++row)
    out[row] = state.of[row] == finished && outcome.of[row] == ok && std::isnan(saved[row]);
  return out;
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

bool has_padding(const Metrics& m) {
  return m.useful_fraction && *m.useful_fraction < 1;
}

std::string usual_metric(std::span<const std::span<const ResultRow>> sweeps) {
  RatesSeen seen;
  for (const auto rows : sweeps) {
    for (const ResultRow& row : rows) {
      const Metrics& m = row.metrics;
      seen.add(m.tokens_per_s_gpu, m.useful_fraction, m.step_ms);
    }
  }
  return seen.usual_metric();
}

std::string usual_metric(std::span<const ResultRow> rows) {
  return usual_metric(std::span(&rows, 1));
}

std::string usual_metric(const ResultColumns& columns) {
  using Numbers = const std::vector<double>*;  // null: not selected
  const auto numbers = [&](std::string_view name) -> Numbers {
    const auto found = columns.numbers.find(name);
    return found == columns.numbers.end() ? nullptr : &found->second;
  };
  const auto value = [](Numbers column, std::size_t row) -> std::optional<double> {
    if (column == nullptr || std::isnan((*column)[row])) return std::nullopt;
    return (*column)[row];
  };
  const Numbers tokens = numbers("tokens_per_s_gpu"), useful = numbers("useful_fraction"),
                step = numbers("step_ms");
  RatesSeen seen;
  for (std::size_t row = 0; row < columns.size(); ++row)
    seen.add(value(tokens, row), value(useful, row), value(step, row));
  return seen.usual_metric();
}

double useful_share_of(const Metrics& m) {
  return m.useful_fraction.value_or(1);
}

std::optional<double> useful_rate(const Metrics& m) {
  if (m.useful_tokens_per_s_gpu || !m.tokens_per_s_gpu) return m.useful_tokens_per_s_gpu;
  return *m.tokens_per_s_gpu * useful_share_of(m);
}

std::string ranked_metrics() {
  std::string out;
  for (const Column& c : columns())
    if (c.better != Better::kNone) out.append(out.empty() ? "" : ", ").append(c.key);
  return out;
}

}  // namespace sweep
