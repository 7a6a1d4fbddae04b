// TimeLimit: whether an attempt is likely to end before the allocation does. It knows the end, what the plan
// predicted of each attempt and how long attempts took so far; it starts and ends nothing. Pure: the caller
// tells the time.
#pragma once
#include <optional>

#include "schema/attempt.h"

namespace sweep::agent {

class TimeLimit {
 public:
  // The allocation ends `limit_s` after `now_s` (steady clock); nullopt: nothing ends it.
  TimeLimit(std::optional<double> limit_s, double now_s) : began_s_(now_s), limit_s_(limit_s) {}

  bool over(double now_s) const { return limit_s_ && now_s - began_s_ >= *limit_s_; }
  // An attempt that no whole allocation is long enough for is let in while most of the time is left.
  bool allows(const Attempt&, double now_s) const;
  // Seconds it is likely to take, by the prediction and the pace of those before it; its deadline at most.
  double estimate(const Attempt&) const;
  // An attempt has ended by itself after so long.
  void ended(const Attempt&, double took_s);

 private:
  double began_s_;
  std::optional<double> limit_s_;
  // Sums over all attempts that have ended.
  double took_s_ = 0, predicted_s_ = 0;
  // The longest any took beyond its prediction: starting costs the same for all.
  double most_beyond_s_ = 0;
};

}  // namespace sweep::agent
