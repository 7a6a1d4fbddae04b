// PeerLease and PeerClock: what a connection between two agents knows of the other side: how long it has been
// silent, and how far its clock is from ours. Both are told the time and read no clock.
#pragma once
#include <algorithm>

#include "base/integers.h"

namespace sweep::agent {

class PeerLease {
 public:
  static constexpr int kBeatsPerLease = 5;
  explicit PeerLease(double seconds) : seconds_(seconds) {}
  double seconds() const { return seconds_; }
  double seconds_per_beat() const { return seconds_ / kBeatsPerLease; }
  void begin(double now_s) { last_look_s_ = now_s; }
  void heard() { silent_s_ = 0; }
  // Whether the lease is over. Time in which this process itself did not run counts as two beats at most: a
  // stopped agent that goes on learns from the connection, and not from its own absence, whether the other
  // side gave it up.
  bool look(double now_s) {
    silent_s_ += std::min(now_s - last_look_s_, 2 * seconds_per_beat());
    last_look_s_ = now_s;
    return silent_s_ >= seconds_;
  }

 private:
  double seconds_;
  double silent_s_ = 0, last_look_s_ = 0;
};

class PeerClock {
 public:
  // The other's UTC clock minus ours; 0: not measured yet.
  i64 offset_ns() const { return offset_ns_; }
  // A message of ours was sent, answered with the other's time, and the answer arrived. The quickest round
  // trip tells most. All after 1970; numbers that cannot be such times are ignored.
  void answered(i64 sent_ns, i64 theirs_ns, i64 now_ns) {
    if (sent_ns <= 0 || sent_ns > now_ns || theirs_ns <= 0) return;
    const i64 trip = std::max<i64>(now_ns - sent_ns, 1);
    if (best_trip_ns_ != 0 && trip > best_trip_ns_) return;
    best_trip_ns_ = trip;
    offset_ns_ = theirs_ns - (sent_ns + trip / 2);
  }

 private:
  i64 offset_ns_ = 0;
  // 0: none yet.
  i64 best_trip_ns_ = 0;
};

}  // namespace sweep::agent
