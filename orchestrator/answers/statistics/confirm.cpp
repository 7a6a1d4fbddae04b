#include "orchestrator/answers/statistics/confirm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/json_values.h"

namespace sweep::answers {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_about(const std::vector<double>& values, double mean) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [&](double sum, double v) { return sum + (v - mean) * (v - mean); });
}

// Logarithms, so that spreads are shares and rates and times tell the same.
std::vector<double> logs(const std::vector<double>& values) {
  std::vector<double> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), [](double v) { return std::log(v); });
  return out;
}

// The mean's 95 % interval; absent below two values.
std::optional<Interval> t_interval(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const double n = static_cast<double>(values.size()), mean = mean_of(values);
  const double half = student_t95(values.size() - 1) * std::sqrt(squares_about(values, mean) / (n - 1) / n);
  return Interval{mean - half, mean + half};
}

const Remeasured::Visit* visit_in(const Remeasured& of, const std::string& allocation) {
  const auto it = std::find_if(of.visits.begin(), of.visits.end(),
                               [&](const auto& visit) { return visit.allocation == allocation; });
  return it == of.visits.end() || it->values.empty() ? nullptr : &*it;
}

std::string percent_of(const std::optional<double>& share) {
  return share ? significant(*share * 100) + " %" : "-";
}

std::string plus_or_minus(double share) {
  return fmt::format("{:+.2f} %", share * 100);
}

std::string_view word_of(RankingStatus status) {
  static constexpr std::string_view kWords[] = {"leader", "behind", "tied", "ahead", "unknown"};
  return kWords[static_cast<std::size_t>(status)];
}

std::string words(const Versus& v) {
  const std::string by =
      v.share ? plus_or_minus(*v.share) + (v.range ? fmt::format(" [{} .. {}]", plus_or_minus(v.range->low),
                                                                 plus_or_minus(v.range->high))
                                                   : "")
              : "";
  switch (v.status) {
    case RankingStatus::kLeader:
      return "was first";
    case RankingStatus::kBehind:
      return "behind: " + by;
    case RankingStatus::kTied:
      return "tied: " + by;
    case RankingStatus::kAhead:
      return "AHEAD: " + by;
    case RankingStatus::kUnknown:
      break;
  }
  return "cannot be told";
}

std::string aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], display_width(line[i]));
    }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (i + 1 < line.size()) out += std::string(widths[i] - display_width(line[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string verdict_on(const std::vector<ConfirmedTrial>& all) {
  const auto count = [&](RankingStatus s) {
    return std::ranges::count(all, s, [](const ConfirmedTrial& each) { return each.against.status; });
  };
  const std::string& first = all.front().of.trial_id;
  if (!all.front().spread)
    return fmt::format("trial {} was first and could not be measured again: {}", first,
                       safe_text(all.front().of.problem));
  if (count(RankingStatus::kAhead) > 0)
    return fmt::format(
        "the ranking does not hold: {} of {} are ahead of trial {} (95 % intervals of the differences "
        "exclude 0)",
        count(RankingStatus::kAhead), all.size() - 1, first);
  if (count(RankingStatus::kTied) > 0)
    return fmt::format(
        "{} of the {} others cannot be distinguished from trial {}: the 95 % intervals of the differences "
        "include "
        "0; more --allocations narrow them",
        count(RankingStatus::kTied), all.size() - 1, first);
  if (count(RankingStatus::kUnknown) > 0)
    return fmt::format("{} of the {} others could not be compared with trial {}",
                       count(RankingStatus::kUnknown), all.size() - 1, first);
  if (all.size() == 1) return fmt::format("trial {} is the only one that was measured", first);
  return fmt::format("the ranking holds: trial {} is first (95 % intervals of the differences exclude 0)",
                     first);
}

}  // namespace

double student_t95(std::size_t degrees_of_freedom) {
  static constexpr double kTable[] = {12.7062, 4.30265, 3.18245, 2.77645, 2.57058,
                                      2.44691, 2.36462, 2.30600, 2.26216, 2.22814};
  if (degrees_of_freedom == 0) return INFINITY;
  if (degrees_of_freedom <= std::size(kTable)) return kTable[degrees_of_freedom - 1];
  // Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun 26.7.5): 4 digits from 11 on.
  const double z = 1.959963985, n = static_cast<double>(degrees_of_freedom), z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z5 * z * z + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

std::optional<Spread> spread_of(const Remeasured& of) {
  std::vector<double> means, counts;
  double inside = 0, total = 0, sum_of_squares = 0;
  for (const auto& visit : of.visits) {
    if (visit.values.empty()) continue;
    const auto values = logs(visit.values);
    means.push_back(mean_of(values));
    const double n = static_cast<double>(values.size());
    counts.push_back(n);
    inside += squares_about(values, means.back());
    total += n, sum_of_squares += n * n;
  }
  if (means.empty()) return std::nullopt;
  Spread out;
  out.value = std::exp(mean_of(means));
  const double groups = static_cast<double>(means.size());
  if (total > groups) out.within = std::sqrt(inside / (total - groups));
  if (const auto range = t_interval(means)) out.range = Interval{std::exp(range->low), std::exp(range->high)};
  if (means.size() < 2) return out;
  double grand = 0, among = 0;
  for (std::size_t j = 0; j < means.size(); ++j) grand += counts[j] * means[j] / total;
  for (std::size_t j = 0; j < means.size(); ++j) among += counts[j] * (means[j] - grand) * (means[j] - grand);
  const double each = (total - sum_of_squares / total) / (groups - 1);
  const double noise = out.within.value_or(0);
  out.between = std::sqrt(std::max(0.0, (among / (groups - 1) - noise * noise) / each));
  return out;
}

Versus versus(const Remeasured& one, const Remeasured& leader, bool larger_is_better) {
  std::vector<double> differences;
  for (const auto& visit : one.visits)
    if (const auto* other = visit_in(leader, visit.allocation); other && !visit.values.empty())
      differences.push_back(mean_of(logs(visit.values)) - mean_of(logs(other->values)));
  Versus out;
  if (differences.empty()) return out;
  out.share = std::expm1(mean_of(differences));
  const auto range = t_interval(differences);
  if (!range) return out;
  out.range = Interval{std::expm1(range->low), std::expm1(range->high)};
  if (range->low <= 0 && range->high >= 0)
    out.status = RankingStatus::kTied;
  else
    out.status = (range->low > 0) == larger_is_better ? RankingStatus::kAhead : RankingStatus::kBehind;
  return out;
}

Confirmed confirmed(const std::vector<Remeasured>& all, const std::string& metric) {
  Confirmed out{metric, {}, "", false};
  for (const auto& each : all) {
    Versus against = versus(each, all.front(), !lower_is_better(metric));
    if (&each == &all.front()) against.status = RankingStatus::kLeader;
    out.trials.push_back({each, spread_of(each), against});
  }
  if (all.empty()) return out;
  out.verdict = verdict_on(out.trials);
  out.holds = out.trials.front().spread && std::ranges::none_of(out.trials, [](const ConfirmedTrial& each) {
                return each.against.status == RankingStatus::kAhead;
              });
  return out;
}

std::string confirmed_text(const Confirmed& found) {
  const Column* column = find_column(found.metric);
  double largest = 0;
  for (const auto& each : found.trials) largest = std::max(largest, each.of.before);
  const Scale scale = scale_for(column ? column->unit : "", largest);
  const std::string unit = scale.unit.empty() ? "" : fmt::format(" [{}]", scale.unit);
  std::vector<std::vector<std::string>> lines = {{"", "trial", found.metric + " before" + unit, "again",
                                                  "95 % interval", "between allocations", "within",
                                                  "allocations", "against the first", "configuration"}};
  for (const auto& [of, spread, against] : found.trials)
    lines.push_back(
        {std::to_string(lines.size()), of.trial_id, scale(of.before), spread ? scale(spread->value) : "-",
         spread && spread->range
             ? fmt::format("{} .. {}", scale(spread->range->low), scale(spread->range->high))
             : "-",
         spread ? percent_of(spread->between) : "-", spread ? percent_of(spread->within) : "-",
         std::to_string(of.visits.size()), of.problem.empty() ? words(against) : safe_text(of.problem),
         safe_text(of.configuration)});
  return aligned(lines) + found.verdict + "\n";
}

nlohmann::json confirmed_json(const Confirmed& found, const std::string& ended_early) {
  using nlohmann::json;
  const auto interval = [](const std::optional<Interval>& range) {
    return range ? json{range->low, range->high} : json(nullptr);
  };
  json trials = json::array();
  for (const auto& [of, spread, against] : found.trials)
    trials.push_back({{"trial", of.trial_id},
                      {"configuration", of.configuration},
                      {"before", of.before},
                      {"again", spread ? json(spread->value) : json(nullptr)},
                      {"interval", interval(spread ? spread->range : std::nullopt)},
                      {"between_allocations", or_null(spread ? spread->between : std::nullopt)},
                      {"within_allocations", or_null(spread ? spread->within : std::nullopt)},
                      {"allocations", of.visits.size()},
                      {"standing", word_of(against.status)},
                      {"against_first", or_null(against.share)},
                      {"against_first_interval", interval(against.range)},
                      {"problem", text_or_null(of.problem)}});
  const bool decided = ended_early.empty();
  return {{"metric", found.metric},
          {"holds", decided ? json(found.holds) : json(nullptr)},
          {"verdict", decided ? json(found.verdict) : json(nullptr)},
          {"ended_early", text_or_null(ended_early)},
          {"trials", trials}};
}

}  // namespace sweep::answers
