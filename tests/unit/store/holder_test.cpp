// The status of a lease by what is known of its holder: every pair, as a table.
#include "orchestrator/store/holder.h"

#include <gtest/gtest.h>

#include <array>

namespace sweep::store {
namespace {

constexpr auto kAll = std::array{Process::kAlive, Process::kGone, Process::kRebooted, Process::kOtherMachine,
                                 Process::kOutOfSight};
constexpr auto kWords = std::array{JobWord::kUnknown, JobWord::kAlive, JobWord::kOver, JobWord::kLost};
constexpr auto kBeats = std::array{Beat::kRecent, Beat::kQuiet, Beat::kSilent};

// H: held, U: uncertain, F: free. Of a holder that was watched, by what Slurm says (rows, as kWords) and how
// long ago its last heartbeat was (columns, as kBeats).
struct Case {
  Process process;
  std::array<const char*, 4> watched, unwatched;
};
constexpr std::array kTable{
    Case{Process::kAlive, {"HHH", "HHH", "HHH", "HHH"}, {"HHH", "HHH", "HHH", "HHH"}},
    Case{Process::kGone, {"FFF", "FFF", "FFF", "FFF"}, {"FFF", "FFF", "FFF", "FFF"}},
    Case{Process::kRebooted, {"HFF", "HFF", "HFF", "HFF"}, {"HHU", "HHU", "HHU", "HHU"}},
    Case{Process::kOtherMachine, {"HHF", "HHF", "HFF", "HHF"}, {"HHU", "HHU", "HHU", "HHU"}},
    Case{Process::kOutOfSight, {"HHU", "HHU", "HFF", "HHF"}, {"HHU", "HHU", "HHU", "HHU"}},
};

LeaseStatus read(char letter) {
  return letter == 'H' ? LeaseStatus::kHeld : letter == 'U' ? LeaseStatus::kUncertain : LeaseStatus::kFree;
}

TEST(Holder, EveryPairOfWhatIsKnownAndWhatFollows) {
  ASSERT_EQ(kTable.size(), kAll.size());
  for (const Case& each : kTable)
    for (std::size_t word = 0; word < kWords.size(); ++word)
      for (std::size_t beat = 0; beat < kBeats.size(); ++beat)
        for (const bool watched : {false, true})
          EXPECT_EQ(lease_status_of(each.process, kWords[word], kBeats[beat], watched),
                    read((watched ? each.watched : each.unwatched)[word][beat]))
              << "process " << static_cast<int>(each.process) << ", word " << word << ", beat " << beat
              << ", watched " << watched;
}

TEST(Holder, AHeartbeatIsQuietAfterThreeAndSilentAfterTheLimit) {
  EXPECT_EQ(beat_of(0), Beat::kRecent);
  EXPECT_EQ(beat_of(3 * kBeatEverySeconds), Beat::kRecent);
  EXPECT_EQ(beat_of(3 * kBeatEverySeconds + 1), Beat::kQuiet);
  EXPECT_EQ(beat_of(kLeaseSilenceSeconds), Beat::kQuiet);
  EXPECT_EQ(beat_of(kLeaseSilenceSeconds + 1), Beat::kSilent);
}

}  // namespace
}  // namespace sweep::store
