#include "orchestrator/report/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/report/format.h"

namespace sweep::report {
namespace {

struct KeyLess {
  bool operator()(const std::vector<Value>& a, const std::vector<Value>& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), value_less);
  }
};

struct Ranked {
  double value = 0;
  const ResultRow* row = nullptr;
};

struct Group {
  BestOfGroup out;
  std::vector<Ranked> ranked;
};

// Files the row under what its group needs to know; true when it is to be ranked.
bool admit(const ResultRow& row, const std::optional<double>& value, const BestOptions& options,
           BestOfGroup& group) {
  if (row.state != State::kFinished) return ++group.not_run, false;
  if (row.outcome != Outcome::kOk) return ++group.not_ok, false;
  if (!value) return ++group.not_measured, false;
  if (!options.headroom) return true;
  const auto memory = options.memory_of(row);
  const auto& peak = row.metrics.peak_allocated_bytes;
  if (!memory || !peak) return ++group.unknown_headroom, false;
  const bool fits = static_cast<double>(*peak) <= (1 - *options.headroom) * static_cast<double>(*memory);
  return fits || (++group.too_full, false);
}

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
  if (g.not_ok > 0) parts.push_back(fmt::format("{} that did not end ok", g.not_ok));
  if (g.not_run > 0) parts.push_back(fmt::format("{} not run yet", g.not_run));
  return fmt::format("nothing to rank: {}", fmt::join(parts, ", "));
}

void finish(Group& group, const BestOptions& options, bool lower) {
  auto& ranked = group.ranked;
  BestOfGroup& out = group.out;
  out.ranked = static_cast<i64>(ranked.size());
  if (ranked.empty()) {
    out.why_none = why_none(out);
    return;
  }
  std::sort(ranked.begin(), ranked.end(), [lower](const Ranked& a, const Ranked& b) {
    if (a.value != b.value) return lower ? a.value < b.value : a.value > b.value;
    return a.row->trial_id < b.row->trial_id;
  });
  out.winner = ranked.front().row;
  out.value = ranked.front().value;
  out.interval = interval_of(*out.winner, options.metric);
  std::vector<double> values;
  for (const Ranked& r : ranked) values.push_back(r.value);
  out.median = median(std::move(values));
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    const auto other = interval_of(*ranked[i].row, options.metric);
    const bool tie =
        ranked[i].value == out.value || (out.interval && other && out.interval->overlaps(*other));
    if (!tie && (!out.interval || !other)) ++out.without_interval;
    if (tie) {
      out.ties.push_back(ranked[i].row);
    } else if (out.runners_up.size() < options.runners_up) {
      out.runners_up.push_back(ranked[i].row);
    }
  }
}

}  // namespace

std::optional<i64> device_memory(const ResultRow& row) {
  if (row.trial.memory_cap_bytes) return row.trial.memory_cap_bytes;
  const auto hardware = shape::find_hardware(row.trial.hardware);
  return hardware ? hardware->memory_bytes : std::nullopt;
}

Expected<std::vector<BestOfGroup>> best(std::span<const ResultRow> rows, const BestOptions& options) {
  const auto metric = resolve_metric(options.metric);
  if (!metric) return tl::unexpected(metric.error());
  if (options.headroom && !(*options.headroom >= 0 && *options.headroom < 1)) {
    return fail(fmt::format("A headroom of {} is no fraction of memory; give one from 0 to below 1.",
                            *options.headroom));
  }
  std::vector<Field> keys;
  for (const std::string& name : options.group_by) {
    auto field = Field::resolve(name, rows);
    if (!field) return tl::unexpected(field.error());
    keys.push_back(*field);
  }
  std::map<std::vector<Value>, Group, KeyLess> groups;
  for (const ResultRow& row : rows) {
    std::vector<Value> key;
    for (const Field& field : keys) key.push_back(field.of(row));
    Group& group = groups.try_emplace(std::move(key)).first->second;
    const auto value = number(metric->of(row));
    if (admit(row, value, options, group.out)) group.ranked.push_back({*value, &row});
  }
  std::vector<BestOfGroup> out;
  for (auto& [key, group] : groups) {
    finish(group, options, lower_is_better(options.metric));
    group.out.key = key;
    out.push_back(std::move(group.out));
  }
  return out;
}

Expected<double> parse_share(std::string_view text, std::string_view what) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool read = error == std::errc{} && end == digits.data() + digits.size() && std::isfinite(value);
  if (percent) value /= 100;
  if (!read || value < 0 || value >= 1) {
    return fail(
        fmt::format("'{}' is no {}: give a share from 0 to below 1, as 5% or 0.05.", safe_text(text), what));
  }
  return value;
}

}  // namespace sweep::report
