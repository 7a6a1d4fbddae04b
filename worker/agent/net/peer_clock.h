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
  void on_message() { silent_s_ = 0; }
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
  // The answer to a message of ours arrived just now: when we sent it by our steady clock, the other's UTC time
  // in it, and now by both of our clocks. The quickest round trip of the last minute tells most: a clock that was
  // set counts after that. Numbers that cannot be such times are ignored.
  void answered(i64 sent_steady_ns, i64 theirs_ns, i64 now_steady_ns, i64 now_unix_ns) {
    if (sent_steady_ns <= 0 || sent_steady_ns > now_steady_ns || theirs_ns <= 0) return;
    const i64 trip = std::max<i64>(now_steady_ns - sent_steady_ns, 1);
    const bool best_is_recent = best_trip_ns_ != 0 && now_steady_ns - best_at_ns_ < kTrustedNs;
    if (best_is_recent && trip > best_trip_ns_) return;
    best_trip_ns_ = trip;
    best_at_ns_ = now_steady_ns;
    offset_ns_ = theirs_ns - (now_unix_ns - trip / 2);
  }

 private:
  static constexpr i64 kTrustedNs = 60'000'000'000;
  i64 offset_ns_ = 0;
  // 0: none yet.
  i64 best_trip_ns_ = 0, best_at_ns_ = 0;
};

}  // namespace sweep::agent
