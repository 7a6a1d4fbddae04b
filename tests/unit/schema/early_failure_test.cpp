#include "schema/early_failure.h"

#include <gtest/gtest.h>

#include <vector>

namespace sweep {
namespace {

std::vector<RankPosition> seen_in(std::initializer_list<const char*> phases) {
  std::vector<RankPosition> out;
  for (const char* phase : phases) out.emplace_back().phase = phase;
  return out;
}

TEST(EarlyFailure, ThePhaseInARecordDecidesWhateverTheAgentSaw) {
  EXPECT_TRUE(failed_early(Phase::kStart, seen_in({"step"})));
  EXPECT_TRUE(failed_early(Phase::kInit, {}));
  for (const Phase late : {Phase::kBuild, Phase::kWarmup, Phase::kStep})
    EXPECT_FALSE(failed_early(late, seen_in({"start"}))) << to_string(late);
}

TEST(EarlyFailure, WithoutARecordEveryRankMustHaveBeenSeenEarly) {
  EXPECT_TRUE(failed_early({}, seen_in({"start", "init"})));
  EXPECT_TRUE(failed_early({}, {})) << "no rank was seen: none had begun";
  EXPECT_FALSE(failed_early({}, seen_in({"start", "build"})));
  EXPECT_FALSE(failed_early({}, seen_in({"unknown"}))) << "its page could not be read";
}

}  // namespace
}  // namespace sweep
