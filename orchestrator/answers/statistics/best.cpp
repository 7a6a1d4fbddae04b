#include "orchestrator/answers/statistics/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/expected.h"
#include "base/number_in.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/grouping.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

// The columns that ranking uses; NaN: not measured.
struct Measured {
  std::span<const double> value, step, low, high;
  std::span<const std::string_view> id;
  FollowsStep how;
  Better better;

  std::optional<Interval> interval(std::uint32_t row) const {
    return interval_of(how, value[row], {step[row], low[row], high[row]});
  }
  bool before(std::uint32_t a, std::uint32_t b) const {
    return ranks_before(better, value[a], id[a], value[b], id[b]);
  }
};

const CodedColumn& coded(const ResultColumns& columns, std::string_view name) {
  return columns.coded.find(name)->second;
}

const std::vector<double>& numbers(const ResultColumns& columns, std::string_view name) {
  return columns.numbers.find(name)->second;
}

std::vector<char> where_equal(const CodedColumn& column, std::string_view text) {
  std::vector<char> out;
  for (const Value& value : column.values) out.push_back(value == Value{std::string(text)});
  return out;
}

// Device memory of each row, worked out once per hardware and cap; NaN: not known.
std::vector<double> memory_of_rows(const ResultColumns& columns) {
  const CodedColumn &hardware = coded(columns, "hardware"), &cap = coded(columns, "memory_cap_bytes");
  std::vector<std::vector<double>> known;
  ResultRow row;
  for (const Value& name : hardware.values) {
    auto& of_cap = known.emplace_back();
    row.trial.hardware = std::get<std::string>(name);
    for (const Value& bytes : cap.values) {
      const auto* whole = std::get_if<i64>(&bytes);
      row.trial.memory_cap_bytes = whole ? std::optional(*whole) : std::nullopt;
      const auto memory = device_memory(row);
      of_cap.push_back(memory ? static_cast<double>(*memory) : kNotKnown);
    }
  }
  std::vector<double> out(columns.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = known[hardware.of[i]][cap.of[i]];
  return out;
}

// Files a row under what its group needs to know; true when it is to be ranked.
class Admission {
 public:
  Admission(const ResultColumns& columns, const BestOptions& options)
      : state_(coded(columns, "state")),
        outcome_(coded(columns, "outcome")),
        finished_(where_equal(state_, to_string(State::kFinished))),
        ok_(where_equal(outcome_, to_string(Outcome::kOk))),
        pruned_(where_equal(outcome_, to_string(Outcome::kPruned))),
        unsupported_(where_equal(outcome_, to_string(Outcome::kUnsupported))),
        may_be_best_(may_be_best(columns)),
        value_(numbers(columns, options.metric)) {
    if (!options.headroom) return;
    full_ = 1 - *options.headroom;
    peak_ = numbers(columns, "peak_allocated_bytes");
    memory_ = memory_of_rows(columns);
  }

  bool admits(std::size_t row, BestOfGroup& group) const {
    if (!finished_[state_.of[row]]) return ++group.not_run, false;
    const std::uint32_t outcome = outcome_.of[row];
    if (pruned_[outcome] || unsupported_[outcome]) return ++group.pruned, false;
    if (!ok_[outcome]) return ++group.not_ok, false;
    if (std::isnan(value_[row])) return ++group.not_measured, false;
    if (!may_be_best_[row]) return ++group.stopped_early, false;
    if (memory_.empty()) return true;
    if (std::isnan(memory_[row]) || std::isnan(peak_[row])) return ++group.unknown_headroom, false;
    return peak_[row] <= full_ * memory_[row] || (++group.too_full, false);
  }

 private:
  const CodedColumn &state_, &outcome_;
  std::vector<char> finished_, ok_, pruned_, unsupported_;
  std::vector<bool> may_be_best_;
  std::span<const double> value_, peak_;
  std::vector<double> memory_;
  double full_ = 1;
};

std::string why_none(const BestOfGroup& g) {
  std::vector<std::string> parts;
  if (g.too_full > 0) parts.push_back(fmt::format("{} with less headroom than asked", g.too_full));
  if (g.unknown_headroom > 0) {
    parts.push_back(
        fmt::format("{} whose headroom is not known (no peak measured, or no device memory known: set "
                    "memory_cap_bytes)",
                    g.unknown_headroom));
  }
  if (g.not_measured > 0) parts.push_back(fmt::format("{} without this metric", g.not_measured));
  if (g.stopped_early > 0) parts.push_back(fmt::format("{} that were stopped early", g.stopped_early));
  if (g.not_ok > 0) parts.push_back(fmt::format("{} that did not end ok", g.not_ok));
  if (g.pruned > 0) parts.push_back(fmt::format("{} pruned", g.pruned));
  if (g.not_run > 0) parts.push_back(fmt::format("{} not run yet", g.not_run));
  return fmt::format("nothing to rank: {}", fmt::join(parts, ", "));
}

std::vector<std::string> ids_of(const Measured& of, std::vector<std::uint32_t>& rows, std::size_t most) {
  most = std::min(most, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(most), rows.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return of.before(a, b); });
  std::vector<std::string> out;
  for (std::size_t i = 0; i < most; ++i) out.emplace_back(of.id[rows[i]]);
  return out;
}

// Returns the row of the winner; nullopt: nothing to rank.
std::optional<std::uint32_t> finish(BestOfGroup& out, const std::vector<std::uint32_t>& ranked,
                                    const Measured& of, const BestOptions& options) {
  out.ranked = static_cast<i64>(ranked.size());
  if (ranked.empty()) {
    out.why_none = why_none(out);
    return std::nullopt;
  }
  const std::uint32_t winner = *std::min_element(
      ranked.begin(), ranked.end(), [&](std::uint32_t a, std::uint32_t b) { return of.before(a, b); });
  out.value = of.value[winner];
  out.interval = of.interval(winner);
  std::vector<double> values;
  values.reserve(ranked.size());
  for (const std::uint32_t row : ranked) values.push_back(of.value[row]);
  out.median = median(std::move(values));
  std::vector<std::uint32_t> tied, others;
  for (const std::uint32_t row : ranked) {
    if (row == winner) continue;
    const auto interval = of.interval(row);
    const bool ties = are_tied(out.value, out.interval, of.value[row], interval);
    if (!ties && (!out.interval || !interval)) ++out.without_interval;
    (ties ? tied : others).push_back(row);
  }
  out.ties = ids_of(of, tied, tied.size());
  out.runners_up = ids_of(of, others, options.runners_up);
  return winner;
}

Expected<void> check(const BestOptions& options) {
  SWEEP_TRY(resolve_ranked(options.metric));
  if (options.headroom && !(*options.headroom >= 0 && *options.headroom < 1)) {
    return fail(ErrorKind::kInvalidValue, "headroom",
                fmt::format("A headroom of {} is not a fraction of memory; give one from 0 to below 1.",
                            *options.headroom));
  }
  return {};
}

}  // namespace

std::vector<std::string> comparable_groups(std::span<const Field> differ) {
  std::vector<std::string> out = {"model"};
  for (const char* name : {"hardware", "seq_len"}) {
    if (std::ranges::any_of(differ, [&](const Field& field) { return field.name() == name; }))
      out.emplace_back(name);
  }
  return out;
}

bool is_all_pruned(const BestOfGroup& g) {
  const i64 others =
      g.ranked + g.not_run + g.not_ok + g.not_measured + g.stopped_early + g.too_full + g.unknown_headroom;
  return g.pruned > 0 && others == 0;
}

Value ties_of(const BestOfGroup& group) {
  if (!group.winner || (group.ties.empty() && group.without_interval > 0)) return {};
  return static_cast<i64>(group.ties.size());
}

NoInterval why_no_interval(const BestOfGroup& group, const BestOptions& options) {
  if (follows_step(options.metric) == FollowsStep::kNot) return NoInterval::kMetric;
  if (options.rehearsed) return NoInterval::kModelled;
  return group.winner->metrics.timed_steps ? NoInterval::kFewSteps : NoInterval::kImported;
}

std::string_view to_string(NoInterval why) {
  static constexpr std::string_view kSentences[] = {
      "this metric has no confidence interval", "modelled times have no spread",
      "imported results carry no step samples", "fewer than 6 timed steps give no confidence interval"};
  return kSentences[std::size_t(why)];
}

std::optional<i64> device_memory(const ResultRow& row) {
  if (row.trial.memory_cap_bytes) return row.trial.memory_cap_bytes;
  const auto hardware = shape::find_hardware(row.trial.hardware);
  return hardware ? hardware->memory_bytes : std::nullopt;
}

ColumnSelection best_columns(const BestOptions& options) {
  ColumnSelection out = kMayBeBestColumns;
  out.numbers.insert(out.numbers.end(), {options.metric, "step_ms", "step_ms_ci_low", "step_ms_ci_high"});
  for (const std::string& name : options.group_by) out.coded.push_back(find_column(name) ? name : "labels");
  if (!options.headroom) return out;
  out.coded.insert(out.coded.end(), {"hardware", "memory_cap_bytes"});
  out.numbers.emplace_back("peak_allocated_bytes");
  return out;
}

ColumnSelection best_columns_with_axes(const BestOptions& options) {
  ColumnSelection out = best_columns(options);
  out.numbers.insert(out.numbers.end(), kUsualMetricColumns.begin(), kUsualMetricColumns.end());
  for (const Column& column : columns()) {
    if (column.role == Role::kAxis) out.coded.emplace_back(column.key);
  }
  out.coded.emplace_back("labels");
  return out;
}

Expected<std::vector<BestOfGroup>> best(const ResultColumns& columns, const BestOptions& options,
                                        const ReadRows& read) {
  SWEEP_TRY(check(options));
  std::vector<Field> fields;
  for (const std::string& name : options.group_by) {
    SWEEP_GET(auto field, Field::resolve(name, columns));
    fields.push_back(field);
  }
  const Grouping grouping = group_by(columns, fields);
  std::vector<BestOfGroup> out(grouping.keys.size());
  std::vector<std::vector<std::uint32_t>> ranked(out.size());
  const Admission admission(columns, options);
  for (std::uint32_t row = 0; row < columns.size(); ++row) {
    const std::uint32_t group = grouping.of[row];
    if (admission.admits(row, out[group])) ranked[group].push_back(row);
  }
  const Measured measured{.value = numbers(columns, options.metric),
                          .step = numbers(columns, "step_ms"),
                          .low = numbers(columns, "step_ms_ci_low"),
                          .high = numbers(columns, "step_ms_ci_high"),
                          .id = columns.trial,
                          .how = follows_step(options.metric),
                          .better = find_column(options.metric)->better};
  std::vector<i64> entries;
  std::vector<std::size_t> won;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].key = grouping.keys[i];
    const auto winner = finish(out[i], ranked[i], measured, options);
    if (winner) entries.push_back(columns.entry[*winner]), won.push_back(i);
  }
  SWEEP_GET(auto rows, read(entries));
  if (rows.size() != won.size()) return fail("The results changed while they were read; try again.");
  for (std::size_t i = 0; i < won.size(); ++i) out[won[i]].winner = std::move(rows[i]);
  return out;
}

Expected<std::vector<BestOfGroup>> best(std::span<const ResultRow> rows, const BestOptions& options) {
  SWEEP_TRY(check(options));
  ResultColumns columns = ResultColumns::empty(best_columns(options));
  std::vector<i64> places(rows.size());
  std::iota(places.begin(), places.end(), i64{0});
  columns.append(rows, places);
  return best(columns, options, [&](std::span<const i64> entries) -> Expected<std::vector<ResultRow>> {
    std::vector<ResultRow> out;
    for (const i64 at : entries) out.push_back(rows[static_cast<std::size_t>(at)]);
    return out;
  });
}

Expected<double> parse_share(std::string_view text, std::string_view what) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = number_in<double>(digits).value_or(-1);
  if (percent) value /= 100;
  if (!std::isfinite(value) || value < 0 || value >= 1) {
    return fail(
        ErrorKind::kInvalidValue, text,
        fmt::format("'{}' is no {}: give a share from 0 to below 1, as 5% or 0.05.", safe_text(text), what));
  }
  return value;
}

}  // namespace sweep::answers
