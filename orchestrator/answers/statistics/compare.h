// Comparison: the configurations that two sweeps have in common, what changed in one metric, and which
// changes are more than noise when that many are looked at. Several sweeps are each compared with the first one, A.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "schema/provenance.h"

namespace sweep::answers {

struct CompareOptions {
  std::string metric = "tokens_per_s_gpu";
  // The share of differences called significant that is expected to be none.
  double false_discovery_rate = 0.05;
  std::optional<double> fail_on = {};  // a regression of at least this share counts: 0.05
};

// Verdicts in the order in which they are shown.
enum class Change {
  kBroke,      // ok in A, not in B
  kSlower,     // significantly worse
  kFaster,     // significantly better
  kUnclear,    // not told from noise
  kNoMeasure,  // a value without an interval on one side: the change is shown, its significance is not known
  kRepaired,   // not ok in A, ok in B
};
std::string_view to_string(Change);

struct Pair {
  const ResultRow* a = nullptr;
  const ResultRow* b = nullptr;
  Change change = Change::kNoMeasure;
  std::optional<double> before, after;  // values of the metric
  std::optional<double> share;          // after / before - 1
  std::optional<Interval> interval;     // 95 %, of that share
  std::optional<double> p, q;           // two-sided; q adjusted for all pairs compared (Benjamini-Hochberg)
  bool worse = false;                   // the share points to the bad side of this metric
  bool regression = false;              // counts for fail_on
};

struct Comparison {
  std::vector<Pair> pairs;  // pairs in the order of Change; within one, the largest change first
  std::vector<const ResultRow*> only_a, only_b;
  i64 unanswered = 0;  // configurations of both: ok in neither, not finished, or never tried by a search
  i64 reused = 0;  // results of one attempt, which a sweep took over from the other (--reuse): no comparison
  i64 regressions = 0;
  bool exact = false;  // a metric without noise: every difference is real
};

// Matched by trial id: the same configuration whatever the sweep, database or labels. Error: an unknown
// metric.
Expected<Comparison> compare(std::span<const ResultRow> a, std::span<const ResultRow> b,
                             const CompareOptions&);

// A against each of the others, in their order. q is adjusted for the pairs of all of them.
using SweepRows = std::span<const ResultRow>;
Expected<std::vector<Comparison>> compare_all(SweepRows a, std::span<const SweepRows> others,
                                              const CompareOptions&);

// The letter stands for a sweep beside others: A is the first one.
constexpr std::size_t kMostSides = 26;
std::string side_letter(std::size_t side);
// "A", "A and B", "A, B and C".
std::string in_words(std::span<const std::string> names);

// A configuration of A, and its pair with each other sweep; null: that one lacks it, or it has no answer on both.
struct ComparedConfiguration {
  const ResultRow* a = nullptr;
  std::vector<const Pair*> pairs;
};
// Configurations in the order of their worst Change; within one, the largest change first.
std::vector<ComparedConfiguration> by_configuration(std::span<const Comparison>);

// The differences between the machines and builds of the sides, a line for each fact: they are the first
// suspects.
std::string machine_differences(std::span<const std::span<const Environment>> sides);

// The views, of two sweeps or several. `names`: of all of them, A first.
//
// Pairs as a table, values as stored. Of several, `side` and `sweep` say which one stands for B.
Table compare_table(std::span<const Comparison>, std::span<const std::string> names, const CompareOptions&);
std::string compare_text(std::span<const Comparison>, std::span<const std::string> names,
                         const CompareOptions&, std::size_t width);
// The parts of that text: sentences, a line each; the pairs as people read them, of several a row for each
// configuration.
std::string compare_summary(std::span<const Comparison>, const CompareOptions&);
Table compare_shown(std::span<const Comparison>, const CompareOptions&);
// Sentences, a line each, say how many configurations of both sweeps cannot be compared, and why.
std::string uncompared_lines(std::span<const Comparison>);
// Lines say what only one of two sweeps has: "2 configurations only in A", of several "2 configurations in A
// and not in C". Ids of some follow where `named`.
std::string alone_lines(std::span<const Comparison>, bool named);

}  // namespace sweep::answers
