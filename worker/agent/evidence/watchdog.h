// Watchdog: decides from heartbeats alone whether an attempt hangs. Pure: it is told what was seen and when,
// and knows no process, file or clock. Time without a look (a paused machine, a stopped agent) counts
// as one look at most.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/attempt.h"
#include "schema/progress.h"

namespace sweep::agent {

// What one look at a rank's heartbeat page saw.
struct Heartbeat {
  bool alive = true;  // false: its process has ended, so it is watched no more
  Phase phase = Phase::kStart;
  Part part = Part::kNone;
  std::uint64_t step = 0, beats = 0, collective = 0, collective_done = 0;
  CollectiveName entered{}, awaited{};
  bool operator==(const Heartbeat&) const = default;
};

class Watchdog {
 public:
  enum class Verdict { kHang, kTimeout, kLingers };  // kLingers: it has written its record and does not exit
  struct Finding {
    Verdict verdict;
    i64 rank = 0;
    std::string why;  // a sentence
  };

  // `names`: what each rank is called.
  Watchdog(const Deadlines& deadlines, std::vector<i64> names);
  Watchdog(const Deadlines& deadlines, i64 ranks);  // called 0 to ranks - 1
  // REQUIRES: one heartbeat per rank; now_s never goes back. Of several ranks past their deadline it names one
  // that waits for no other, or else one that is silent for half its time and waits for no other: the others wait for it.
  std::optional<Finding> look(const std::vector<Heartbeat>& seen, double now_s);
  // The silence so far counts for nothing: the rank that is waited for had not begun.
  void excuse();
  double idle_s(i64 index) const { return ranks_[static_cast<std::size_t>(index)].idle_s; }

 private:
  struct Watched {
    Heartbeat last;
    double idle_s = 0;
  };
  double limit(Phase phase) const;
  Finding finding(std::size_t index) const;
  std::optional<std::size_t> waited_for() const;  // the longest silent, though not past its deadline yet

  Deadlines deadlines_;
  std::vector<Watched> ranks_;
  const std::vector<i64> names_;
  std::optional<double> last_look_s_;
  double total_s_ = 0;
};

}  // namespace sweep::agent
