// Watchdog: decides from heartbeats alone whether an attempt hangs. Pure: its caller tells it what was seen
// and when; it knows no process, file or clock. Time without a look (a paused machine, a stopped agent)
// counts as one look at most.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/attempt.h"
#include "schema/progress.h"

namespace sweep::agent {

// The content of a rank's heartbeat page at one look.
struct Heartbeat {
  // False: its process has ended, so it is watched no more.
  bool alive = true;
  Phase phase = Phase::kStart;
  Part part = Part::kNone;
  std::uint64_t step = 0, beats = 0, collective = 0, collective_done = 0;
  CollectiveName entered{}, awaited{};
  bool operator==(const Heartbeat&) const = default;
};

class Watchdog {
 public:
  // kDoesNotExit: the rank has written its record and does not exit.
  enum class Verdict { kHang, kTimeout, kDoesNotExit };
  struct Finding {
    Verdict verdict;
    i64 rank = 0;
    // A sentence.
    std::string why;
  };

  // names: how sentences name each rank.
  Watchdog(const Deadlines& deadlines, std::vector<i64> names);
  // Named 0 to ranks - 1.
  Watchdog(const Deadlines& deadlines, i64 ranks);
  // REQUIRES: one heartbeat per rank; now_s never goes back. Of several ranks past their deadline it names
  // one that waits for no other. If all of them wait, it names one that is silent for half its time and waits
  // for no other: they wait for it.
  std::optional<Finding> look(const std::vector<Heartbeat>& seen, double now_s);
  // The silence so far does not count: the rank that the others wait for has not begun.
  void reset_idle();
  double idle_s(i64 index) const { return ranks_[static_cast<std::size_t>(index)].idle_s; }

 private:
  struct Watched {
    Heartbeat last;
    double idle_s = 0;
  };
  double limit(Phase phase) const;
  Finding finding(std::size_t index) const;
  // The longest silent, though not past its deadline yet.
  std::optional<std::size_t> waited_for() const;

  Deadlines deadlines_;
  std::vector<Watched> ranks_;
  const std::vector<i64> names_;
  std::optional<double> last_look_s_;
  double total_s_ = 0;
};

}  // namespace sweep::agent
