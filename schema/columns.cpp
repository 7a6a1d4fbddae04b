#include "schema/columns.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <type_traits>
#include <unordered_map>

#include "schema/axis_domain.h"
#include "schema/labels.h"
#include "schema/rehearsal.h"

namespace sweep {
namespace {

Value value_of(i64 v) {
  return v;
}
Value value_of(bool v) {
  return i64{v};
}
Value value_of(const std::string& v) {
  return v;
}
template <AxisChoice Enum>
Value value_of(Enum v) {
  return std::string(to_string(v));
}
Value value_of(double v) {
  return std::isfinite(v) ? Value{v} : Value{};
}
template <class T>
Value value_of(const std::optional<T>& v) {
  return v ? value_of(*v) : Value{};
}
// The value of an axis: NULL if it was never resolved.
template <bool kZeroIsUnresolved, class T>
Value axis_value(const T& v) {
  if constexpr (kZeroIsUnresolved && std::is_same_v<T, i64>) {
    if (v == 0) return {};
  }
  return value_of(v);
}
Value text_or_null(const std::string& v) {
  return v.empty() ? Value{} : Value{v};
}

// Whether the trial has a value of this axis: a program of a workload does not know all axes.
bool known(const ResultRow& row, std::string_view axis) {
  return axis == "workload" || axis == "program" || knows_axis(row.trial.labels, axis);
}

// A command's text is no parameter that tables and heatmaps compare: the axes in it have columns of their
// own.
constexpr Role role_of(std::string_view key) {
  return key == "program" ? Role::kIdentity : Role::kAxis;
}

// A column as the table states it; its default is what a trial has of which nothing is said.
struct Row {
  std::string_view key, type, unit, sentence;
  Value (*get)(const ResultRow&);
  Role role = Role::kIdentity;
  Better better = Better::kNone;
  std::string_view title = {};
  bool has_default = false;
};

constexpr Row kRows[] = {
    {"sweep", "text", "", "name of the sweep", [](const ResultRow& r) { return Value{r.sweep}; }},
    {"trial", "text", "", "id of the trial: a hash of its canonical configuration",
     [](const ResultRow& r) { return Value{r.trial_id}; }},
    {"rehearsed", "flag", "",
     "whether it ran on phantom GPUs (docs/rehearsal.md): times are modelled, not measured",
     [](const ResultRow& r) { return Value{i64{is_rehearsal(r.sweep)}}; }},
    {"model", "text", "", "catalogue name of the model, or the name of its folder",
     [](const ResultRow& r) { return Value{r.trial.model}; }, Role::kAxis},
#define AXIS(type, key, def, domain, unit, title, sentence)                               \
  {#key,                                                                                  \
   #type,                                                                                 \
   unit,                                                                                  \
   sentence,                                                                              \
   [](const ResultRow& r) {                                                               \
     return known(r, #key) ? axis_value<zero_is_unresolved(#key)>(r.trial.key) : Value{}; \
   },                                                                                     \
   role_of(#key),                                                                         \
   Better::kNone,                                                                         \
   title,                                                                                 \
   true},
#define CHOICE(Enum, key, def, unit, title, sentence, ...) AXIS(text, key, def, , unit, title, sentence)
#include "schema/fields.def"
#undef CHOICE
#undef AXIS
    {"labels", "text", "", "axes of the grid's `derive:` section, as a JSON object",
     [](const ResultRow& r) { return text_or_null(r.trial.labels); }},
    {"state", "text", "", "where it is: pending, posted, running, finished, retired",
     [](const ResultRow& r) { return Value{std::string(to_string(r.state))}; }},
    {"outcome", "text", "",
     "how it ended: ok, oom, hang, timeout, crash, invalid, node_lost, unsupported, cancelled, "
     "pruned, failed_unknown; null while it has not",
     [](const ResultRow& r) {
       return r.state == State::kFinished ? Value{std::string(to_string(r.outcome))} : Value{};
     }},
    {"oom_kind", "text", "", "device or host; of an oom only",
     [](const ResultRow& r) { return r.oom_kind ? Value{std::string(to_string(*r.oom_kind))} : Value{}; }},
    {"reason", "text", "", "a sentence: cause, rank, phase; null for ok",
     [](const ResultRow& r) { return text_or_null(r.reason); }},
#define METRIC(type, key, unit, better, title, sentence)                      \
  {#key,          #type,          unit, sentence, [](const ResultRow& r) { return value_of(r.metrics.key); }, \
   Role::kMetric, Better::better, title},
#include "schema/fields.def"
#undef METRIC
    {"attempts", "i64", "", "tries at running the trial",
     [](const ResultRow& r) { return Value{r.attempts}; }},
    {"finished_at", "text", "", "end of the final attempt, ISO 8601 in UTC",
     [](const ResultRow& r) { return r.finished_unix_ns ? Value{utc_time(*r.finished_unix_ns)} : Value{}; }},
};

std::vector<Column> make_columns() {
  std::vector<Column> out;
  const ResultRow nothing_said;
  for (const Row& row : kRows)
    out.push_back({row.key, row.type, row.unit, row.sentence, row.role, row.get,
                   row.has_default ? row.get(nothing_said) : Value{}, row.better, row.title});
  return out;
}

}  // namespace

std::span<const Column> columns() {
  static const std::vector<Column> table = make_columns();
  return table;
}

const Column* find_column(std::string_view key) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const Column*> map;
    for (const Column& c : columns()) map.emplace(c.key, &c);
    return map;
  }();
  const auto it = index.find(key);
  return it == index.end() ? nullptr : it->second;
}

std::string utc_time(i64 unix_ns) {
  using namespace std::chrono;
  const auto ms = floor<milliseconds>(sys_time<nanoseconds>(nanoseconds(unix_ns)));
  const auto day = floor<days>(ms);
  const year_month_day date(day);
  const hh_mm_ss time(ms - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", int(date.year()), unsigned(date.month()),
                     unsigned(date.day()), time.hours().count(), time.minutes().count(),
                     time.seconds().count(), time.subseconds().count());
}

}  // namespace sweep
