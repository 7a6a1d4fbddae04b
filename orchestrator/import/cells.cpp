#include "orchestrator/import/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/number_in.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/lengths.h"
#include "orchestrator/import/csv.h"
#include "schema/axis_domain.h"
#include "schema/codec.h"

namespace sweep::imports {
namespace {

constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: whole numbers are exact up to here

std::string quoted(std::string_view cell) {
  constexpr std::size_t kShown = 60;
  return cell.size() <= kShown ? fmt::format("'{}'", cell) : fmt::format("'{}...'", cell.substr(0, kShown));
}

// Dividing by 100 is exact where multiplying by 0.01 is not: 41.6 % is 0.416.
double in_field_unit(double value, double factor) {
  const double inverse = std::round(1 / factor);
  return factor < 1 && std::abs(inverse * factor - 1) < 1e-12 ? value / inverse : value * factor;
}

// Files written by pandas hold whole numbers as 4.0 where a column has gaps.
Expected<i64> read_whole(std::string_view cell, double factor) {
  const auto number = read_number(cell);
  if (!number) return tl::unexpected<Error>(number.error());
  const double value = in_field_unit(*number, factor);
  if (std::abs(value) > kLargestWhole || (factor == 1 && value != std::floor(value)))
    return fail(ErrorKind::kInvalidValue, cell, "{} is not a whole number", quoted(cell));
  return static_cast<i64>(std::llround(value));
}

template <AxisChoice Enum>
Expected<Enum> read_choice(std::string_view word) {
  const auto& words = axis_domain(ChoiceWords<Enum>::kKey)->words;
  const auto choice = choice_from<Enum>(word);
  if (choice && std::ranges::find(words, to_string(*choice)) != words.end()) return *choice;
  return fail(ErrorKind::kInvalidValue, word, "{} is not a value of {}; there are: {}", quoted(word),
              ChoiceWords<Enum>::kKey, fmt::join(words, ", "));
}

Expected<i64> read_whole_axis(const Column& axis, double factor, std::string_view cell) {
  const auto value = read_whole(cell, factor);
  const AxisDomain* domain = axis_domain(axis.key);
  if (value && domain && (*value < domain->min || *value > domain->max))
    return fail(ErrorKind::kInvalidValue, cell, "{} is outside {} .. {} for {}", quoted(cell), domain->min,
                domain->max, axis.key);
  return value;
}

struct AxisWriter {
  const Column& axis;
  double factor;
  std::string_view cell;
  Expected<void> done;

  void put(i64& member) { keep(read_whole_axis(axis, factor, cell), member); }
  void put(std::optional<i64>& member) { keep(read_whole_axis(axis, factor, cell), member); }
  void put(bool& member) { keep(read_flag(cell), member); }
  void put(std::string& member) {
    if (axis.key != "lengths") {
      member = cell;
      return;
    }
    const auto lengths = shape::Lengths::parse(cell);
    if (lengths)
      member = lengths->text();
    else
      done = tl::unexpected<Error>(lengths.error());
  }
  template <AxisChoice Enum>
  void put(Enum& member) {
    keep(read_choice<Enum>(cell), member);
  }
  template <class T, class Member>
  void keep(const Expected<T>& value, Member& member) {
    if (value)
      member = *value;
    else
      done = tl::unexpected<Error>(value.error());
  }
};

struct MetricWriter {
  const Column& metric;
  double factor;
  std::string_view cell;
  Expected<void> done;

  void put(std::optional<std::string>& member) { member = std::string(cell); }
  void put(std::optional<i64>& member) {
    const auto value = read_whole(cell, factor);
    keep(value, member);
  }
  void put(std::optional<double>& member) {
    const auto value = read_number(cell);
    keep(value, member);
    if (value && member) member = in_field_unit(*member, factor);
    if (member && metric.unit == "fraction" && *member > 1)
      done = fail(ErrorKind::kInvalidValue, cell,
                  "{} is above 1 as a fraction; is it a percentage? Then say so: --map COLUMN={}:%",
                  quoted(cell), metric.key);
  }
  template <class T>
  void keep(const Expected<T>& value, std::optional<T>& member) {
    if (!value)
      done = tl::unexpected<Error>(value.error());
    else if (*value < 0)
      done = fail(ErrorKind::kInvalidValue, cell,
                  "{} is negative; leave the field empty where nothing was measured", quoted(cell));
    else
      member = *value;
  }
};

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view trimmed(std::string_view cell) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!cell.empty() && blank(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && blank(cell.back())) cell.remove_suffix(1);
  return cell;
}

bool says_nothing(std::string_view cell) {
  static constexpr std::array<std::string_view, 7> kNothing = {"", "nan", "null", "none", "n/a", "na", "-"};
  return cell.size() <= 4 && std::ranges::find(kNothing, lower_case(cell)) != kNothing.end();
}

bool says_nothing(const Column& axis, std::string_view cell) {
  const AxisDomain* domain = axis_domain(axis.key);
  return says_nothing(cell) && !(domain && std::ranges::find(domain->words, cell) != domain->words.end());
}

Expected<double> read_number(std::string_view cell) {
  std::string_view digits = cell;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (const auto value = number_in<double>(digits); value && std::isfinite(*value)) return *value;
  const bool comma = cell.find(',') != std::string_view::npos;
  return fail(ErrorKind::kInvalidValue, cell, "{} is not a number{}", quoted(cell),
              comma ? "; write it with a decimal point and without separators of thousands"
                    : "; an empty field or nan means not measured");
}

Expected<bool> read_flag(std::string_view cell) {
  const std::string word = lower_case(cell);
  if (word == "true" || word == "1" || word == "yes") return true;
  if (word == "false" || word == "0" || word == "no") return false;
  return fail(ErrorKind::kInvalidValue, cell, "{} is neither true nor false", quoted(cell));
}

nlohmann::json label_value(std::string_view cell) {
  const std::string_view digits = cell.substr(cell.starts_with('-') ? 1 : 0);
  const bool is_code = digits.starts_with('+') || (digits.size() > 1 && digits[0] == '0' && digits[1] != '.');
  const auto number = read_number(cell);
  if (!number || is_code || std::abs(*number) > kLargestWhole) return std::string(cell);
  if (*number == std::trunc(*number)) return static_cast<i64>(*number);
  return *number;
}

Expected<void> read_axis(const Column& axis, double factor, std::string_view cell, Trial& trial) {
  AxisWriter writer{axis, factor, cell, {}};
  for_each_axis(trial, [&](const FieldInfo& info, const auto&, auto& member) {
    if (info.key == axis.key) writer.put(member);
  });
  return writer.done;
}

Expected<void> read_metric(const Column& metric, double factor, std::string_view cell, Metrics& metrics) {
  MetricWriter writer{metric, factor, cell, {}};
  for_each_metric(metrics, [&](const FieldInfo& info, auto& member) {
    if (info.key == metric.key) writer.put(member);
  });
  return writer.done;
}

// `sweep export csv` writes 0 or 1; other programs may write a word.
Expected<void> refuse_rehearsed(std::string_view cell) {
  const std::string word = lower_case(cell);
  if (word == "0" || word == "false") return {};
  return fail(
      ErrorKind::kRefused, cell,
      "{}: the row was rehearsed on phantom GPUs, so its times are modelled and not measured; remove such "
      "rows from the file (`sweep merge` copies a rehearsal between databases and keeps it apart)",
      quoted(cell));
}

Expected<std::optional<ModelSpec>> read_model_dimensions(std::string_view cell) {
  const auto parsed = parse_json(cell, kMostCellBytes, 4);
  SWEEP_GET(const auto spec, parsed ? from_json<ModelSpec>(*parsed) : tl::unexpected(parsed.error()));
  if (spec.layers < 1) return std::nullopt;
  SWEEP_TRY(shape::completed(spec));
  return spec;
}

Expected<std::optional<Outcome>> read_outcome(std::string_view cell) {
  static const std::map<std::string_view, Outcome> kWords = {
      {"success", Outcome::kOk},
      {"succeeded", Outcome::kOk},
      {"done", Outcome::kOk},
      {"completed", Outcome::kOk},
      {"finished", Outcome::kOk},
      {"failed", Outcome::kFailedUnknown},
      {"fail", Outcome::kFailedUnknown},
      {"failure", Outcome::kFailedUnknown},
      {"error", Outcome::kFailedUnknown},
      {"out_of_memory", Outcome::kOom},
      {"timed_out", Outcome::kTimeout},
      {"crashed", Outcome::kCrash},
  };
  static constexpr std::array<std::string_view, 5> kOpen = {"pending", "posted", "running", "queued",
                                                            "retired"};
  const std::string word = lower_case(cell);
  if (std::ranges::find(kOpen, word) != kOpen.end()) return std::nullopt;
  if (const auto known = kWords.find(word); known != kWords.end()) return known->second;
  const auto outcome = outcome_from(word);
  if (!outcome)
    return fail(
        ErrorKind::kInvalidValue, cell,
        "{} is not a known outcome; write ok, oom, timeout, hang, crash, or failed where no more is known",
        quoted(cell));
  if (is_infrastructure(*outcome))
    return std::nullopt;  // cancelled, node_lost: no answer about the configuration
  return outcome;
}

}  // namespace sweep::imports
