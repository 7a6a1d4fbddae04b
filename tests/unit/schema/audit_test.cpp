#include "schema/audit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(Audit, TakesItsShareAndAlwaysTheSame) {
  int small = 0, large = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto id = fmt::format("{:016x}", i);
    const bool in = is_in_audit(id, 0.02);
    small += in, large += is_in_audit(id, 0.2);
    EXPECT_EQ(in, is_in_audit(id, 0.02));
    EXPECT_TRUE(!in || is_in_audit(id, 0.2)) << "a larger share holds a smaller one";
  }
  EXPECT_NEAR(small, 200, 60);
  EXPECT_NEAR(large, 2000, 200);
  EXPECT_FALSE(is_in_audit("0123456789abcdef", 0));
}

TEST(Audit, OnlyConclusionsAreAudited) {
  EXPECT_TRUE(is_fit_rule("memory") && is_fit_rule("history") && is_rank_rule("search"));
  for (const char* rule : {"divisibility", "where", "grow", "rank_algebra", "unsupported", ""})
    EXPECT_FALSE(is_fit_rule(rule) || is_rank_rule(rule)) << rule;
}

}  // namespace
}  // namespace sweep
