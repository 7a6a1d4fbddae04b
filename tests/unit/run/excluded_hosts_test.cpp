// ExcludedHosts: short waits, quarantines that double, and both in time.
#include "orchestrator/run/excluded_hosts.h"

#include <gtest/gtest.h>

namespace sweep::run {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;
constexpr Clock::Point kStart{};

AttemptEnd unclean(const std::string& cleanup_failure) {
  AttemptEnd end;
  end.attempt = 7;
  end.clean = false;
  end.cleanup_failure = cleanup_failure;
  return end;
}

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

TEST(ExcludedHosts, ASecondLossExcludesAHostButNotWhereSeveralMayBeTheCause) {
  ExcludedHosts hosts({10, 300});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(hosts.lost({{0, "a"}, {1, "b"}}, "gone", kStart).empty());
  EXPECT_TRUE(hosts.lost({{0, "a"}}, "no answer", kStart).empty());
  EXPECT_TRUE(hosts.lost({{0, "b"}}, "no answer", kStart).empty());
  const auto said = hosts.lost({{0, "a"}}, "refused", kStart);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("the last one: refused"), std::string::npos) << said[0];
  EXPECT_EQ(hosts.quarantined(), Names{"a"});
}

TEST(ExcludedHosts, AHostThatCannotBeCleanedIsExcludedAtOnceAndReportedOnce) {
  ExcludedHosts hosts({10, 300});
  const auto said = hosts.unclean({{0, "a"}}, unclean("survived SIGKILL: a.out (pid 9, state D)"));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("attempt 7 left it unclean: survived SIGKILL"), std::string::npos) << said[0];
  EXPECT_TRUE(hosts.unclean({{0, "a"}}, unclean("again")).empty());
  EXPECT_EQ(hosts.quarantined(), Names{"a"});
}

TEST(ExcludedHosts, OfSeveralHostsThoseWithUncleanNodesAreExcluded) {
  const Hosts several = {{0, "a"}, {1, "b"}, {11, "c"}};
  for (const char* text : {"", "node 0 (a): GPU 0 holds 9 bytes", "host c is not clean", "somewhere"}) {
    ExcludedHosts hosts({10, 300});
    AttemptEnd end = unclean(text);
    EXPECT_TRUE(hosts.unclean(several, end).empty()) << text;
    end.unclean_nodes = {1, 99};
    EXPECT_EQ(hosts.unclean(several, end).size(), 1u) << text;
    EXPECT_EQ(hosts.quarantined(), Names{"b"}) << text;
  }
}

TEST(ExcludedHosts, OneThatIsUncleanOrSlowTooStaysOut) {
  for (const bool slow : {false, true}) {
    ExcludedHosts hosts({10, 300});
    for (int i = 0; i < 2; ++i) hosts.lost({{0, "a"}}, "refused", kStart);
    slow ? hosts.slow("a", "matmul 20 GFLOP/s") : hosts.unclean({{0, "a"}}, unclean("survived SIGKILL"));
    EXPECT_TRUE(hosts.release_due(kStart + 24h).empty());
    EXPECT_EQ(hosts.quarantined(), Names{"a"});
  }
}

}  // namespace
}  // namespace sweep::run
