// ExcludedHosts: short waits, quarantines that double, and both in time.
#include "orchestrator/run/excluded_hosts.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;
constexpr Clock::Point kStart{};

TEST(ExcludedHosts, AHostCoolsDownForAMoment) {
  ExcludedHosts hosts({10, 300});
  hosts.cool_down("a", kStart);
  EXPECT_EQ(hosts.cooling(kStart + 9s), Names{"a"});
  EXPECT_EQ(hosts.avoided(kStart + 9s), Names{"a"});
  EXPECT_TRUE(hosts.quarantined().empty());
  EXPECT_TRUE(hosts.avoided(kStart + 10s).empty());
}

TEST(ExcludedHosts, AQuarantineDoublesEachTime) {
  ExcludedHosts hosts({10, 300});
  auto now = kStart;
  EXPECT_TRUE(hosts.lost({{0, "a"}}, "refused", now).empty()) << "the first loss";
  for (const auto length : {300s, 600s, 1200s}) {
    EXPECT_EQ(hosts.lost({{0, "a"}}, "refused", now).size(), 1u);
    EXPECT_TRUE(hosts.release_due(now + length - 1s).empty());
    EXPECT_EQ(hosts.quarantined(), Names{"a"});
    now += length;
    EXPECT_EQ(hosts.release_due(now), Names{"a"});
    EXPECT_TRUE(hosts.quarantined().empty());
  }
}

TEST(ExcludedHosts, OneInQuarantineDoesNotCoolDownBesides) {
  ExcludedHosts hosts({10, 300});
  for (int i = 0; i < 2; ++i) {
    hosts.cool_down("a", kStart);
    hosts.lost({{0, "a"}}, "refused", kStart);
  }
  EXPECT_TRUE(hosts.cooling(kStart).empty());
  EXPECT_EQ(hosts.avoided(kStart), Names{"a"});
}

TEST(ExcludedHosts, AnUncleanOrSlowHostStaysOut) {
  ExcludedHosts hosts({10, 300});
  AttemptEnd end;
  end.clean = false;
  hosts.lost({{0, "a"}}, "refused", kStart);
  hosts.lost({{0, "a"}}, "refused", kStart);
  hosts.unclean({{0, "a"}}, end);
  EXPECT_EQ(hosts.slow("b", "half as fast").size(), 1u);
  EXPECT_TRUE(hosts.release_due(kStart + 24h).empty());
  EXPECT_EQ(hosts.quarantined(), (Names{"a", "b"}));
}

}  // namespace
}  // namespace sweep::run
