#include "orchestrator/answers/statistics/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "orchestrator/answers/format.h"
#include "schema/audit.h"
#include "schema/codec.h"
#include "schema/ranking.h"
#include "schema/strategy.h"

namespace sweep::answers {
namespace {

// An allocator's counts are the same in every run of a configuration: no noise, so no interval is needed.
bool is_exact(std::string_view metric) {
  static const std::set<std::string_view> kExact = {"peak_allocated_bytes", "predicted_bytes",
                                                    "predicted_ms"};
  return kExact.contains(metric);
}

// The values of one fact over all nodes of a side.
std::set<std::string> fact_values(std::span<const Environment> nodes, const std::string& fact) {
  std::set<std::string> out;
  for (const Environment& node : nodes) {
    if (fact == "host") out.insert(safe_text(node.host));
    const auto facts = to_json(node.facts);
    if (facts.contains(fact)) out.insert(safe_text(dump(facts[fact])));
  }
  return out;
}

bool ended_ok(const ResultRow& row) {
  return row.state == State::kFinished && row.outcome == Outcome::kOk;
}
// A strategy, or a rule that stands on results, left it out as not the best: this is no result.
bool never_tried(const ResultRow& row) {
  return row.outcome == Outcome::kPruned && (is_rank_rule(row.rule) || strategy_from(row.rule).has_value());
}
bool ended_otherwise(const ResultRow& row) {
  return row.state == State::kFinished && row.outcome != Outcome::kOk && !is_infrastructure(row.outcome) &&
         !never_tried(row);
}

// Fills in share and p; the verdict waits for the correction.
void measure_pair(Pair& pair, const Field& metric, bool exact) {
  if (!pair.before || !pair.after || *pair.before == 0) return;
  pair.share = *pair.after / *pair.before - 1;
  pair.worse = lower_is_better(metric.name()) ? *pair.share > 0 : *pair.share < 0;
  if (exact) {
    pair.p = *pair.share == 0 ? 1 : 0;
    pair.interval = Interval{*pair.share, *pair.share};
    return;
  }
  const auto a = interval_of(*pair.a, metric.name()), b = interval_of(*pair.b, metric.name());
  if (!a || !b) return;
  if (const auto found = ratio_change(*pair.before, *a, *pair.after, *b)) {
    pair.interval = found->share;
    pair.p = found->p;
  }
}

void correct(std::span<Comparison> all, double rate) {
  std::vector<double> p;
  for (const Comparison& one : all) {
    for (const Pair& pair : one.pairs)
      if (pair.p) p.push_back(*pair.p);
  }
  const auto q = benjamini_hochberg(p);
  std::size_t next = 0;
  for (Comparison& one : all) {
    for (Pair& pair : one.pairs) {
      if (!pair.p) continue;
      pair.q = q[next++];
      pair.change = *pair.q > rate ? Change::kUnclear : pair.worse ? Change::kSlower : Change::kFaster;
    }
  }
}

void count_regressions(Comparison& one, std::optional<double> fail_on) {
  for (Pair& pair : one.pairs) {
    const bool large = pair.share && fail_on && std::fabs(*pair.share) >= *fail_on;
    pair.regression = pair.change == Change::kBroke || (pair.change == Change::kSlower && large);
    one.regressions += pair.regression ? 1 : 0;
  }
}

bool comes_before(const Pair& x, const Pair& y) {
  if (x.change != y.change) return x.change < y.change;
  const double a = std::fabs(x.share.value_or(0)), b = std::fabs(y.share.value_or(0));
  if (a != b) return a > b;
  return x.a->trial_id < y.a->trial_id;
}

// The pairs without their verdicts.
Comparison matched(SweepRows a, SweepRows b, const Field& metric) {
  Comparison out;
  out.exact = is_exact(metric.name());
  std::unordered_map<std::string_view, const ResultRow*> of_b;
  for (const ResultRow& row : b) of_b.emplace(row.trial_id, &row);
  for (const ResultRow& row : a) {
    const auto other = of_b.find(row.trial_id);
    if (other == of_b.end()) {
      out.only_a.push_back(&row);
      continue;
    }
    Pair pair;
    pair.a = &row, pair.b = other->second;
    of_b.erase(other);
    const bool before = ended_ok(row), after = ended_ok(*pair.b);
    if (before && after && is_one_attempt(row, *pair.b)) {
      ++out.reused;
      continue;
    }
    if (before) pair.before = number(metric.of(row));
    if (after) pair.after = number(metric.of(*pair.b));
    if (before && after) {
      measure_pair(pair, metric, out.exact);
    } else if (before && ended_otherwise(*pair.b)) {
      pair.change = Change::kBroke;
    } else if (after && ended_otherwise(row)) {
      pair.change = Change::kRepaired;
    } else {
      ++out.unanswered;
      continue;
    }
    out.pairs.push_back(pair);
  }
  for (const ResultRow& row : b) {
    if (of_b.contains(row.trial_id)) out.only_b.push_back(&row);
  }
  return out;
}

}  // namespace

std::string_view to_string(Change change) {
  static constexpr std::string_view kNames[] = {"broke",   "worse",       "better",
                                                "unclear", "no interval", "repaired"};
  return kNames[std::size_t(change)];
}

Expected<std::vector<Comparison>> compare_all(SweepRows a, std::span<const SweepRows> others,
                                              const CompareOptions& options) {
  SWEEP_GET(const auto metric, resolve_ranked(options.metric));
  std::vector<Comparison> out;
  for (const SweepRows b : others) out.push_back(matched(a, b, metric));
  correct(out, options.false_discovery_rate);
  for (Comparison& one : out) {
    count_regressions(one, options.fail_on);
    std::ranges::sort(one.pairs, comes_before);
  }
  return out;
}

Expected<Comparison> compare(SweepRows a, SweepRows b, const CompareOptions& options) {
  SWEEP_GET(auto all, compare_all(a, {&b, 1}, options));
  return std::move(all.front());
}

std::string side_letter(std::size_t side) {
  return std::string(1, static_cast<char>('A' + side));
}

std::string in_words(std::span<const std::string> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return out;
}

std::vector<ComparedConfiguration> by_configuration(std::span<const Comparison> found) {
  std::map<const ResultRow*, std::vector<const Pair*>> pairs;
  for (std::size_t side = 0; side < found.size(); ++side) {
    for (const Pair& pair : found[side].pairs) {
      auto& of_row = pairs[pair.a];
      of_row.resize(found.size());
      of_row[side] = &pair;
    }
  }
  std::vector<std::pair<Pair, ComparedConfiguration>> ranked;  // configurations by their worst pair
  for (auto& [row, of_row] : pairs) {
    const Pair* worst = nullptr;
    for (const Pair* pair : of_row)
      if (pair && (!worst || comes_before(*pair, *worst))) worst = pair;
    ranked.push_back({*worst, {row, std::move(of_row)}});
  }
  std::ranges::sort(ranked, comes_before, [](const auto& one) -> const Pair& { return one.first; });
  std::vector<ComparedConfiguration> out;
  for (auto& one : ranked) out.push_back(std::move(one.second));
  return out;
}

std::string machine_differences(std::span<const std::span<const Environment>> sides) {
  std::string out;
  for (const char* fact :
       {"host", "gpus", "cpu", "driver", "driver_cuda", "nccl", "libtorch", "kernel", "version", "build"}) {
    std::vector<std::set<std::string>> values;
    for (const auto nodes : sides) values.push_back(fact_values(nodes, fact));
    if (std::ranges::all_of(values, [&](const auto& of_side) { return of_side == values.front(); })) continue;
    out += fmt::format("{}: ", fact);
    for (std::size_t i = 0; i < values.size(); ++i)
      out += fmt::format("{}{} in {}", i > 0 ? ", " : "",
                         values[i].empty() ? "unknown" : fmt::format("{}", fmt::join(values[i], ", ")),
                         side_letter(i));
    out += '\n';
  }
  return out;
}

}  // namespace sweep::answers
