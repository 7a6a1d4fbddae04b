// Settings of searches in a grid: automatic micro-batch sizes, early stops, limits, what results rule out.
#include <gmock/gmock.h>

#include "grid_text.h"

namespace sweep::grid {
namespace {

using ::testing::AllOf;

TEST(GridSearch, AutomaticMicroBatchSizes) {
  const auto sizes = [](const std::string& text) {
    std::vector<i64> out;
    for (const PlanEntry& entry : expanded(kHead + text).admitted())
      out.push_back(entry.trial.micro_batch_size);
    return out;
  };
  const auto all = sizes("grid: {micro_batch_size: auto}\n");
  EXPECT_EQ(all.size(), 64u);
  EXPECT_EQ(all.back(), 1024);
  EXPECT_EQ(sizes("base: {micro_batch_size: {auto: [3, 19]}}\ngrid: {tp: [1]}\n"),
            (std::vector<i64>{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19}));
  EXPECT_EQ(sizes("base: {micro_batch_size: auto, global_batch_size: 24, hardware: cpu}\n"),
            (std::vector<i64>{1, 2, 3, 4, 6, 8, 12, 24}))
      << "those that divide the batch; the others are not listed";
  EXPECT_EQ(sizes("base: {micro_batch_size: auto, hardware: cpu}\ngrid: {global_batch_size: [50, 100]}\n"),
            (std::vector<i64>{1, 1, 2, 2, 4, 5, 5, 10, 10, 20, 25, 25, 50, 50, 100}))
      << "all of those";
  EXPECT_EQ(sizes("base: {micro_batch_size: {auto: [33, 35]}, hardware: cpu}\n"), (std::vector<i64>{33, 35}));
  EXPECT_TRUE(read_text(kHead + "grid: {micro_batch_size: auto}\n", "g.yaml")->auto_micro_batch);
  EXPECT_FALSE(read_text(kHead + "grid: {micro_batch_size: [1]}\n", "g.yaml")->auto_micro_batch);
}

TEST(GridSearch, WrongAutomaticMicroBatchSizesAreRefusedWithTheirPlace) {
  const auto refused = [](const std::string& text) { return error_of(kHead + text); };
  EXPECT_THAT(refused("grid: {micro_batch_size: {auto: [8, 2]}}\n"),
              AllOf(At(3, 33), IsError(ErrorKind::kInvalidValue, "auto")));
  EXPECT_THAT(refused("grid: {micro_batch_size: {auto: 8}}\n"),
              AllOf(At(3, 33), IsError(ErrorKind::kInvalidValue, "auto")));
  EXPECT_THAT(refused("zip: [{micro_batch_size: auto, tp: [1, 2]}]\n"),
              AllOf(At(3, 8), IsError(ErrorKind::kConflict, "micro_batch_size")));
  EXPECT_THAT(refused("grid: {tp: auto}\n"), At(3, 12));
  EXPECT_THAT(refused("grid: {micro_batch_size: [auto, 4]}\n"), At(3, 27));
}

TEST(GridSearch, MeasureAndLimitsOfSearches) {
  const auto grid =
      must(read_text(kHead + "grid: {tp: [1]}\nmeasure: {early_stop: true}\nlimits: {usd: 12.5}\n"
                             "strategy: {kind: grid, history: false, skip_recompute: true}\n",
                     "g.yaml"));
  EXPECT_TRUE(grid.measure.early_stop);
  EXPECT_EQ(grid.limits.usd, 12.5);
  EXPECT_EQ(grid.strategy->history, false);
  EXPECT_EQ(grid.strategy->skip_recompute, true);
}

}  // namespace
}  // namespace sweep::grid
