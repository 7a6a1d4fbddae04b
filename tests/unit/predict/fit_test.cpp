// A fit finds the numbers that made the rows, where rows determine them, and the residual of a cluster.
#include "orchestrator/predict/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/predict.h"
#include "tests/support/error_matchers.h"
#include "tests/unit/predict/predict_fixture.h"

namespace sweep::predict {
namespace {

// Rows made by a profile whose numbers are other than the start's.
std::vector<MeasuredRow> rows_of(const TrainerProfile& p) {
  std::vector<MeasuredRow> rows;
  for (const i64 tp : {1, 2, 4, 8})
    for (const i64 pp : {1, 2, 4})
      for (const i64 batch : {1, 2, 4})
        for (const i64 zero : {0, 1}) {
          const auto made = predicted(laid_out("playbook-1b", 8, 64 / tp / pp, tp, pp, 8, batch, zero), p);
          rows.push_back({{},
                          made.layout,
                          false,
                          true,
                          made.memory.parts.reserved() / p.facts.reported_unit,
                          made.time.step_s});
        }
  return rows;
}

const shape::Hardware& h100() {
  return *shape::known_hardware("h100-sxm-80gb");
}

TEST(Fit, HoldsOnlyNumbersThatItMoves) {
  const auto start = built_in("nanotron");
  const auto rows = rows_of(start);
  EXPECT_THAT(error_in(fit_profile(start, rows, h100(), {"matmul_shar"})),
              IsError(ErrorKind::kUnknownName, "matmul_shar"));
  EXPECT_THAT(error_in(fit_profile(start, rows, h100(), {"product_reach"})),
              IsError(ErrorKind::kUnknownName, "product_reach"))
      << "a fact";
}

TEST(Fit, FindsTheParametersThatMadeTheRows) {
  TrainerProfile other = built_in("nanotron");
  other.time.matmul_share *= 0.75, other.time.layer_launch_s *= 1.3, other.memory.gradient_copies = 2;
  const auto fitted = must(fit_profile(built_in("nanotron"), rows_of(other), h100()));
  const TrainerProfile& p = fitted.profile;
  EXPECT_NEAR(p.time.matmul_share / other.time.matmul_share, 1, 0.06);
  EXPECT_NEAR(p.time.layer_launch_s / other.time.layer_launch_s, 1, 0.04);
  EXPECT_NEAR(p.memory.gradient_copies, 2, 0.2);
  EXPECT_LT(p.error.time, 0.1);
  EXPECT_EQ(p.origins.back().of, (std::vector<std::string>{"time", "error", "memory"}));
  ASSERT_TRUE(fitted.report.time && fitted.report.memory);
  EXPECT_LT(fitted.report.time->mean, 0.05);
  EXPECT_LT(fitted.report.memory->mean, 0.05);
}

TEST(Fit, OfTimesAloneLeavesMemoryAsItIs) {
  TrainerProfile other = built_in("megatron");
  other.time.layer_launch_s *= 1.5;
  auto rows = rows_of(other);
  for (auto& row : rows) row.reported_bytes = 0;
  const auto fitted = must(fit_profile(built_in("megatron"), rows, h100()));
  EXPECT_EQ(fitted.report.memories, 0u);
  EXPECT_FALSE(fitted.report.memory);
  EXPECT_EQ(fitted.profile.memory.base_gib, built_in("megatron").memory.base_gib);
  EXPECT_EQ(fitted.profile.origins.back().of, (std::vector<std::string>{"time", "error"}));
  EXPECT_NEAR(fitted.profile.time.layer_launch_s / other.time.layer_launch_s, 1, 0.1);
}

TEST(Fit, OfMemoryAloneLeavesTimesAsTheyAre) {
  TrainerProfile other = built_in("nanotron");
  other.memory.gradient_copies = 2;
  auto rows = rows_of(other);
  for (auto& row : rows) row.step_s = 0;
  const auto fitted = must(fit_profile(built_in("nanotron"), rows, h100()));
  EXPECT_EQ(fitted.profile.time.matmul_share, built_in("nanotron").time.matmul_share);
  EXPECT_NEAR(fitted.profile.memory.gradient_copies, 2, 0.2);
  EXPECT_FALSE(fitted.report.time);
}

TEST(Fit, FiveRowsMoveWhatTheyDetermineAndLeaveDoubt) {
  TrainerProfile other = built_in("fsdp2");
  other.time.layer_launch_s *= 2;
  auto rows = rows_of(other);
  rows.resize(24);
  std::vector<MeasuredRow> five(rows.begin(), rows.begin() + 5);
  const auto few = fit_profile(built_in("fsdp2"), five, h100()),
             all = fit_profile(built_in("fsdp2"), rows, h100());
  ASSERT_TRUE(few && all);
  ASSERT_EQ(few->report.time_doubt.size(), all->report.time_doubt.size());
  for (std::size_t i = 0; i < few->report.time_doubt.size(); ++i)
    EXPECT_GE(few->report.time_doubt[i], all->report.time_doubt[i]) << i;
  const double kept = built_in("fsdp2").time.far_latency_s;
  EXPECT_NEAR(few->profile.time.far_latency_s, kept, 1e-12 * kept) << "no row crosses nodes by tp";
  TrainerProfile saved = few->profile;
  saved.origins.back().date = "2026-11-24";
  EXPECT_TRUE(profile_from_json(to_json(saved)));
  five.pop_back();
  EXPECT_FALSE(fit_profile(built_in("fsdp2"), five, h100()));
}

TEST(Residual, HoldsOnItsHardwareAndFadesAway) {
  TrainerProfile p = built_in("megatron");
  const auto factor = [&](i64 tp, i64 nodes, const char* hardware) {
    Layout l;
    make_layout(laid_out("playbook-1b", nodes, 8 * nodes / tp, tp, 1, 8, 1, 0), p, l);
    return p.residual.factor(l, hardware);
  };
  std::vector<std::pair<ResidualPlace, double>> seen;
  Layout l;
  for (const i64 batch : {8, 4, 2, 1})
    for (const i64 tp : {1, 2, 4}) {
      make_layout(laid_out("playbook-1b", 1, 8 / tp, tp, 1, 8, batch, 0), p, l);
      seen.emplace_back(residual_place(l), tp == 4 ? 0.2 : 0.0);
    }
  p.residual = residual_of(seen, "a100-80gb");
  EXPECT_NEAR(factor(4, 1, "a100-80gb"), std::exp(0.2), 0.06);
  EXPECT_NEAR(factor(1, 1, "a100-80gb"), 1, 0.05);
  EXPECT_NEAR(factor(4, 64, "a100-80gb"), 1, 0.01) << "far from what was measured";
  EXPECT_EQ(factor(4, 1, "h100-sxm-80gb"), 1);
  const auto again = must(profile_from_json(to_json(p)));
  EXPECT_NEAR(again.residual.factor(l, "a100-80gb"), p.residual.factor(l, "a100-80gb"), 1e-3);
}

}  // namespace
}  // namespace sweep::predict
