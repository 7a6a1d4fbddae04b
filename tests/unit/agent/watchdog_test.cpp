// The watchdog's deadlines, with a clock that only the test moves.
#include "worker/agent/evidence/watchdog.h"

#include <gtest/gtest.h>

namespace sweep::agent {
namespace {

constexpr Deadlines kDeadlines{10, 5, 2, 100, 3, 20};

std::vector<Heartbeat> ranks(std::initializer_list<Phase> phases) {
  std::vector<Heartbeat> out;
  for (const Phase phase : phases) out.push_back({true, phase, Part::kNone, 0, 1, 0, 0});
  return out;
}

// Looks every half second up to `until`; the time of the first finding.
std::optional<double> first_finding(Watchdog& dog, const std::vector<Heartbeat>& seen, double until,
                                    Watchdog::Finding* found = nullptr) {
  for (double now = 0; now <= until; now += 0.5)
    if (const auto finding = dog.look(seen, now)) {
      if (found != nullptr) *found = *finding;
      return now;
    }
  return std::nullopt;
}

TEST(Watchdog, EachPhaseHasItsOwnDeadline) {
  const std::pair<Phase, double> cases[] = {
      {Phase::kStart, 10}, {Phase::kBuild, 10},      {Phase::kFirstStep, 5},
      {Phase::kWarmup, 2}, {Phase::kStep, 2},        {Phase::kReport, 2},
      {Phase::kLoad, 20},  {Phase::kEvaluation, 20}, {Phase::kCheckpoint, 20}};
  for (const auto& [phase, limit] : cases) {
    Watchdog dog(kDeadlines, 1);
    const auto when = first_finding(dog, ranks({phase}), 50);
    ASSERT_TRUE(when) << to_string(phase);
    EXPECT_NEAR(*when, limit + 0.5, 0.51) << to_string(phase);
  }
}

TEST(Watchdog, AnExcusedSilenceBeginsAnew) {
  Watchdog dog(kDeadlines, 1);
  const auto seen = ranks({Phase::kStep});
  for (double now = 0; now <= 20; now += 0.5) {
    EXPECT_FALSE(dog.look(seen, now));
    dog.reset_idle();
  }
  std::optional<double> when;
  for (double now = 20.5; now <= 30 && !when; now += 0.5)
    if (dog.look(seen, now)) when = now;
  ASSERT_TRUE(when);
  EXPECT_NEAR(*when, 22.5, 0.51);
}

TEST(Watchdog, AnyChangeIsProgress) {
  Watchdog dog(kDeadlines, 1);
  auto seen = ranks({Phase::kStep});
  for (double now = 0; now < 50; now += 1) {
    seen[0].beats++;
    EXPECT_FALSE(dog.look(seen, now));
  }
}

TEST(Watchdog, RankThatEndedIsNotWatched) {
  Watchdog dog(kDeadlines, 2);
  auto seen = ranks({Phase::kStep, Phase::kStep});
  seen[0].alive = false;
  Watchdog::Finding found{};
  ASSERT_TRUE(first_finding(dog, seen, 50, &found));
  EXPECT_EQ(found.rank, 1);
}

TEST(Watchdog, NamesTheRankThatBlocksTheOthersFirst) {
  Watchdog dog(kDeadlines, 3);
  auto seen = ranks({Phase::kStep, Phase::kStep, Phase::kStep});
  for (const int waiting : {0, 2})
    seen[waiting].awaited = CollectiveName::of(Collective::kAllReduce, 3, "dp");
  (void)dog.look(seen, 0);
  (void)dog.look(seen, 1);
  seen[1].beats++;
  std::optional<Watchdog::Finding> found;
  for (double now = 1.5; now < 10; now += 0.5) found = dog.look(seen, now);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
}

// A rank stopped just after its peer began to wait for it is not past its own deadline when the peer is.
TEST(Watchdog, NamesTheRankThatIsWaitedForThoughItsOwnDeadlineIsNotPast) {
  for (const double last_beat : {0.5, 1.0, 2.0}) {
    Watchdog dog(kDeadlines, 2);
    auto seen = ranks({Phase::kStep, Phase::kStep});
    seen[0].awaited = CollectiveName::of(Collective::kReduceScatter, 6, "shard");
    std::optional<Watchdog::Finding> found;
    for (double now = 0; !found && now < 10; now += 0.5) {
      if (now == last_beat) seen[1].beats++;
      found = dog.look(seen, now);
    }
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, last_beat < 2.0 ? 1 : 0) << "at work a second ago: no hang of its own";
  }
}

TEST(Watchdog, NamesTheRankThatIsSilentLongest) {
  Watchdog dog(kDeadlines, 2);
  auto seen = ranks({Phase::kStep, Phase::kStep});
  (void)dog.look(seen, 0);
  (void)dog.look(seen, 1);
  seen[0].beats++;
  std::optional<Watchdog::Finding> found;
  for (double now = 1.5; !found && now < 10; now += 0.5) found = dog.look(seen, now);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
}

TEST(Watchdog, TimeWithoutChecksIsNotCountedAsAHang) {
  Watchdog dog(kDeadlines, 1);
  const auto seen = ranks({Phase::kStep});
  EXPECT_FALSE(dog.look(seen, 0));
  EXPECT_FALSE(dog.look(seen, 1000));
}

TEST(Watchdog, TotalIsATimeoutWhateverTheProgress) {
  Watchdog dog({10, 5, 2, 20, 3}, 1);
  auto seen = ranks({Phase::kStep});
  std::optional<Watchdog::Finding> found;
  for (double now = 0; !found && now < 50; now += 0.5) {
    seen[0].beats++;
    found = dog.look(seen, now);
  }
  ASSERT_TRUE(found);
  EXPECT_EQ(found->verdict, Watchdog::Verdict::kTimeout);
}

TEST(Watchdog, RecordedButNotExitedLingers) {
  Watchdog dog(kDeadlines, 1);
  Watchdog::Finding found{};
  ASSERT_TRUE(first_finding(dog, ranks({Phase::kDone}), 50, &found));
  EXPECT_EQ(found.verdict, Watchdog::Verdict::kDoesNotExit);
}

TEST(Watchdog, PhaseFromADamagedPageIsNamedUnknown) {
  EXPECT_EQ(to_string(static_cast<Phase>(77)), "unknown");
  EXPECT_STREQ(name_of(static_cast<Part>(77)), "unknown");
}

}  // namespace
}  // namespace sweep::agent
