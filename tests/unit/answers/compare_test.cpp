#include "orchestrator/answers/statistics/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/must.h"
#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const Comparison& found, const CompareOptions& options) {
  return compare_text({&found, 1}, {}, options, 0);
}

TEST(RatioChange, WorkedOutByHand) {
  // 100 (90 to 110) against 120 (110 to 132): on logarithms, the reach towards 0 is
  // sqrt(ln(120/110)^2 + ln(110/100)^2) = 0.12910.
  const auto found = must(ratio_change(100, {90, 110}, 120, {110, 132}));
  const double change = std::log(1.2), down = std::hypot(std::log(120 / 110.0), std::log(1.1));
  EXPECT_NEAR(found.share.low, std::exp(change - down) - 1, 1e-12);
  EXPECT_NEAR(found.p, std::erfc(change / down * 1.959963984540054 / std::sqrt(2.0)), 1e-12);
  EXPECT_LT(found.p, 0.05);  // the interval agrees: it lies above 0
  EXPECT_GT(found.share.low, 0);
}

TEST(RatioChange, TheIntervalTouchesZeroWherePIsFivePercent) {
  const double reach = std::hypot(std::log(1.1), std::log(1.05));
  const double after = 100 * std::exp(reach);
  const auto found = must(ratio_change(100, {90, 110}, after, {after / 1.05, after * 1.05}));
  EXPECT_NEAR(found.share.low, 0, 1e-12);
  EXPECT_NEAR(found.p, 0.05, 1e-9);
}

TEST(RatioChange, RefusesWhatIsNoInterval) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ratio_change(100, {0, 110}, 100, {90, 110}));
  EXPECT_FALSE(ratio_change(100, {101, 110}, 100, {90, 110}));
  EXPECT_FALSE(ratio_change(nan, {90, 110}, 100, {90, 110}));
  EXPECT_EQ(ratio_change(5, {5, 5}, 5, {5, 5})->p, 1);
  EXPECT_EQ(ratio_change(5, {5, 5}, 6, {6, 6})->p, 0);
}

TEST(BenjaminiHochberg, TheirOwnExample) {
  // Benjamini and Hochberg (1995), section 3.2: of 15 p-values the first four are significant at 5 %.
  const std::vector<double> p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const auto q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(q[i] <= 0.05, i < 4) << i;
  EXPECT_NEAR(q[3], 0.0095 * 15 / 4, 1e-12);
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

TEST(Compare, WhatASearchDidNotTryIsNotBroken) {
  const std::vector<ResultRow> a = {ok_row("x", 1, 100), ok_row("y", 2, 100)};
  std::vector<ResultRow> b = {bad_row("x", 1, Outcome::kPruned, "not tried: max_trials 10 were run"),
                              bad_row("y", 2, Outcome::kPruned, "needs 90 GiB")};
  b[0].rule = "search", b[1].rule = "memory";
  for (const bool swapped : {false, true}) {
    const auto found = must(swapped ? compare(b, a, {}) : compare(a, b, {}));
    EXPECT_EQ(found.unanswered, 1);
    ASSERT_EQ(found.pairs.size(), 1u);
    EXPECT_EQ(found.pairs[0].change, swapped ? Change::kRepaired : Change::kBroke);
  }
}

TEST(Compare, AnAttemptIsNotComparedWithItself) {
  std::vector<ResultRow> a = {ok_row("x", 1, 100), ok_row("y", 2, 100)}, b = a;
  a[0].finished_unix_ns = a[1].finished_unix_ns = b[0].finished_unix_ns = b[1].finished_unix_ns = 7;
  a[0].attempts = a[1].attempts = b[1].attempts = 1, b[0].attempts = 0;  // b took the first one over
  const auto found = must(compare(a, b, {}));
  EXPECT_EQ(found.reused, 1);
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.pairs[0].a->trial_id, "y");
}

TEST(Compare, RegressionsComeFirstAndOnlyLargeSignificantOnesCount) {
  const std::vector<ResultRow> a = {ok_row("slow", 1, 100),
                                    ok_row("noise", 2, 100),
                                    ok_row("fast", 3, 100),
                                    ok_row("broke", 4, 100),
                                    ok_row("small", 5, 100, 0.001),
                                    bad_row("fixed", 6, Outcome::kOom, "too large"),
                                    ok_row("gone", 7, 1)};
  const std::vector<ResultRow> b = {ok_row("slow", 1, 80),
                                    ok_row("noise", 2, 100.4),
                                    ok_row("fast", 3, 140),
                                    bad_row("broke", 4, Outcome::kHang, "rank 3"),
                                    ok_row("small", 5, 98, 0.001),
                                    ok_row("fixed", 6, 50),
                                    ok_row("new", 8, 1)};
  const CompareOptions options{.fail_on = 0.05};
  const auto found = must(compare(a, b, options));
  std::vector<std::string> order;
  for (const Pair& pair : found.pairs)
    order.push_back(pair.a->trial_id + std::string(" ") + std::string(to_string(pair.change)));
  EXPECT_THAT(order, ElementsAre("broke broke", "slow worse", "small worse", "fast better", "noise unclear",
                                 "fixed repaired"));
  EXPECT_EQ(found.regressions, 2);  // broke and slow; `small` is significant, but only 2 %
  EXPECT_EQ(found.only_a.front()->trial_id, "gone");
  EXPECT_EQ(found.only_b.front()->trial_id, "new");
  EXPECT_NEAR(*found.pairs[1].share, -0.2, 1e-12);
  EXPECT_THAT(text_of(found, options), HasSubstr("hang: rank 3"));
}

TEST(Compare, TheSideThatIsOkKeepsItsValue) {
  std::vector<ResultRow> a = {ok_row("broke", 1, 100), bad_row("fixed", 2, Outcome::kOom, "")};
  std::vector<ResultRow> b = {bad_row("broke", 1, Outcome::kHang, ""), ok_row("fixed", 2, 50)};
  b[0].metrics.tokens_per_s_gpu = 7;  // of the steps before it hung: no result
  const auto found = must(compare(a, b, {}));
  ASSERT_EQ(found.pairs.size(), 2u);
  const Pair &broke = found.pairs[0], &repaired = found.pairs[1];
  EXPECT_EQ(std::pair(broke.before, broke.after), std::pair(std::optional(100.0), std::optional<double>()));
  EXPECT_EQ(std::pair(repaired.before, repaired.after),
            std::pair(std::optional<double>(), std::optional(50.0)));
  EXPECT_FALSE(broke.share || repaired.share);
  const Table stored = compare_table({&found, 1}, {}, {}), shown = compare_shown({&found, 1}, {});
  EXPECT_EQ(stored.rows[0][3], Value{100.0});
  EXPECT_EQ(stored.rows[1][4], Value{50.0});
  EXPECT_EQ(shown.rows[0][3], Value{std::string("100")});
}

TEST(Compare, WithoutIntervalsNothingIsSignificant) {
  ResultRow before = ok_row("x", 1, 100), after = ok_row("x", 1, 50);
  after.metrics.step_ms_ci_low.reset();
  const std::vector<ResultRow> a = {before}, b = {after};
  const auto found = compare(a, b, {.fail_on = 0.05});
  EXPECT_EQ(found->pairs.front().change, Change::kNoMeasure);
  EXPECT_NEAR(*found->pairs.front().share, -0.5, 1e-12);
  EXPECT_EQ(found->regressions, 0);
  EXPECT_THAT(text_of(*found, {}), HasSubstr("never called significant"));
}

TEST(Compare, ExactMetricsNeedNoInterval) {
  ResultRow before = ok_row("x", 1, 100), after = before;
  before.metrics.peak_allocated_bytes = 1000, after.metrics.peak_allocated_bytes = 1100;
  const std::vector<ResultRow> a = {before}, b = {after};
  const auto found = compare(a, b, {.metric = "peak_allocated_bytes", .fail_on = 0.05});
  EXPECT_EQ(found->pairs.front().change, Change::kSlower);
  EXPECT_EQ(found->regressions, 1);
}

TEST(Compare, ManyPairsOfNoiseAreNotCalledSignificant) {
  // 40 pairs whose single p-values include some below 5 %: none survives the correction.
  std::vector<ResultRow> a, b;
  for (int i = 0; i < 40; ++i) {
    const std::string id = "t" + std::to_string(i);
    a.push_back(ok_row(id, i + 1, 100));
    b.push_back(ok_row(id, i + 1, i < 2 ? 101.5 : 100.2));
  }
  const auto found = compare(a, b, {});
  EXPECT_LT(*found->pairs.front().p, 0.05);
  for (const Pair& pair : found->pairs) EXPECT_EQ(pair.change, Change::kUnclear);
}

TEST(Compare, NullAndNanAreNoValues) {
  ResultRow before = ok_row("x", 1, 100), after = before;
  after.metrics.tokens_per_s_gpu = std::numeric_limits<double>::quiet_NaN();
  const std::vector<ResultRow> a = {before}, b = {after};
  const auto found = compare(a, b, {});
  EXPECT_EQ(found->pairs.front().after, std::nullopt);
  EXPECT_EQ(compare_table({&*found, 1}, {}, {}).rows.front()[4], Value{});
  EXPECT_FALSE(compare(a, b, {.metric = "no such"}));
  EXPECT_TRUE(compare({}, {}, {})->pairs.empty());
}

// One configuration for each value; its interval is 1 % to each side.
std::vector<ResultRow> sweep_of(const std::vector<double>& rates) {
  std::vector<ResultRow> out;
  for (std::size_t i = 0; i < rates.size(); ++i)
    out.push_back(ok_row("t" + std::to_string(i), static_cast<int>(i) + 1, rates[i]));
  return out;
}

TEST(CompareAll, EachSweepIsComparedWithTheFirstOne) {
  const auto a = sweep_of({100, 100, 100}), b = sweep_of({100, 100, 140}), c = sweep_of({100, 70});
  const SweepRows others[] = {b, c};
  const auto found = must(compare_all(a, others, {.fail_on = 0.05}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(*found[0].pairs.front().share, 0.4, 1e-12);
  EXPECT_NEAR(*found[1].pairs.front().share, -0.3, 1e-12);
  EXPECT_EQ(found[0].regressions + found[1].regressions, 1);
  EXPECT_EQ(found[1].only_a.size(), 1u);
  // Worst first: t1 is worse in C, t2 is better in B and not in C.
  const auto rows = by_configuration(found);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].a->trial_id, "t1");
  EXPECT_EQ(rows[0].pairs[1]->change, Change::kSlower);
  EXPECT_EQ(rows[1].a->trial_id, "t2");
  EXPECT_EQ(rows[1].pairs[1], nullptr);
  EXPECT_FALSE(compare_all(a, others, {.metric = "no such"}));
}

// More looks are more chances of noise: the second sweep's pairs count in the correction of the first one's.
TEST(CompareAll, TheCorrectionIsOverThePairsOfAllSweeps) {
  const auto a = sweep_of({100, 100, 100, 100}), b = sweep_of({101.6, 100, 100, 100}), c = a;
  const SweepRows one[] = {b}, two[] = {b, c};
  const auto alone = compare_all(a, one, {}), both = compare_all(a, two, {});
  const Pair &of_one = alone->front().pairs.front(), &of_two = both->front().pairs.front();
  ASSERT_EQ(of_one.p, of_two.p);
  EXPECT_NEAR(*of_two.q, 2 * *of_one.q, 1e-12) << "the smallest p of 8, not of 4";
}

TEST(CompareAll, TheViewsNameTheSides) {
  const auto a = sweep_of({100, 100}), b = sweep_of({100, 140}), c = sweep_of({100, 70});
  const SweepRows others[] = {b, c};
  const std::string names[] = {"first", "second", "third"};
  const auto found = compare_all(a, others, {});
  const Table stored = compare_table(*found, names, {}), shown = compare_shown(*found, {});
  ASSERT_EQ(stored.rows.size(), 4u);
  EXPECT_EQ(stored.rows[2][0], Value{std::string("C")});
  EXPECT_EQ(stored.rows[2][1], Value{std::string("third")});
  EXPECT_EQ(compare_table({found->data(), 1}, names, {}).columns.front(), "change") << "of two as ever";
  ASSERT_EQ(shown.rows.size(), 2u) << "a row for each configuration";
  EXPECT_THAT(shown.columns, ::testing::Contains("C against A"));
  auto broke = b;
  broke[1].outcome = Outcome::kHang;
  const SweepRows with_broke[] = {broke, c};
  const Table told = compare_shown(*compare_all(a, with_broke, {}), {});
  EXPECT_EQ(told.rows[0][1], shown.rows[0][1]) << "A's value is known though B broke";
  EXPECT_EQ(told.rows[0][2], Value{});
  EXPECT_THAT(compare_text(*found, names, {}, 0), HasSubstr("A: first; B: second; C: third"));
  EXPECT_EQ(in_words(names), "first, second and third");
  EXPECT_EQ(in_words({names, 2}), "first and second");
}

}  // namespace
}  // namespace sweep::answers
