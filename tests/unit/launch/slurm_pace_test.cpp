// How often Slurm is asked: a rule over any clock.
#include <gtest/gtest.h>

#include <vector>

#include "orchestrator/launch/batch/poll_interval.h"

namespace sweep::launch {
namespace {

// When it asks within so many seconds, looked at ten times a second, each round being so many questions.
template <class Disturb>
std::vector<double> asked_within(double seconds, double longest_pause_s, int round, const Disturb& disturb) {
  PollInterval pace(longest_pause_s);
  std::vector<double> out;
  for (double now = 0; now < seconds; now += 0.1) {
    disturb(pace, now);
    if (!pace.due(now)) continue;
    for (int i = 0; i < round; ++i) {
      pace.asked(now);
      out.push_back(now);
    }
    pace.round_over(now);
  }
  return out;
}

// The most questions in any span that begins with one of them.
double most_in(const std::vector<double>& asked, double span_s) {
  std::size_t most = 0;
  for (std::size_t first = 0, last = 0; first < asked.size(); ++first) {
    while (last < asked.size() && asked[last] < asked[first] + span_s) ++last;
    most = std::max(most, last - first);
  }
  return static_cast<double>(most);
}

const auto kQuiet = [](PollInterval&, double) {};
const auto kRestless = [](PollInterval& pace, double now) { pace.poll_soon(now); };

TEST(PollInterval, AQuietSweepAsksLessAndLess) {
  const auto asked = asked_within(3600, 30, 1, kQuiet);
  ASSERT_GT(asked.size(), 100u);
  for (std::size_t i = 15; i < asked.size(); ++i) EXPECT_NEAR(asked[i] - asked[i - 1], 30, 0.3) << i;
}

TEST(PollInterval, IsSoonAfterAChangeThatFollowsQuiet) {
  PollInterval pace(30);
  for (double now = 0; now < 300; now += 0.1)
    if (pace.due(now)) pace.asked(now), pace.round_over(now);
  pace.poll_soon(300);
  EXPECT_FALSE(pace.due(300.4));
  EXPECT_TRUE(pace.due(300.6));
}

TEST(PollInterval, AtMostOneQuestionInFiveSecondsWhateverChanges) {
  for (const int round : {1, 2, 3}) {
    const auto asked = asked_within(3600, 30, round, kRestless);
    EXPECT_GT(asked.size(), 600u) << "it must not fall silent";
    for (const double span : {5.0, 60.0, 600.0, 3600.0})
      EXPECT_LE(most_in(asked, span), PollInterval::kFirst + span / PollInterval::kSpan + round)
          << span << " " << round;
  }
}

TEST(PollInterval, TheUserMaySetAShorterLongestPause) {
  const auto asked = asked_within(600, 1, 1, kRestless);
  EXPECT_GT(asked.size(), 500u);
  EXPECT_LE(most_in(asked, 600), PollInterval::kFirst + 600 + 1);
}

}  // namespace
}  // namespace sweep::launch
