// ConnectionTimer: when a connection that may break is tried again, is dead, needs a sign of life, or is
// given up. Pure: the caller gives the time, in seconds of the steady clock.
#pragma once
#include <algorithm>
#include <optional>

namespace sweep::launch {

class ConnectionTimer {
 public:
  ConnectionTimer(double give_up_s, double now_s) : give_up_s_(give_up_s), contact_s_(now_s) {}

  void connecting(double now_s) {
    again_s_.reset();
    beat_s_ = now_s;
  }
  void on_contact(double now_s) { contact_s_ = now_s; }
  void attached() { pause_s_ = 0; }
  // It is tried again after a pause, which doubles with each failure in a row.
  void lost(double now_s) {
    pause_s_ = std::clamp(pause_s_ * 2, kFirstPause, kLongestPause);
    again_s_ = now_s + pause_s_;
  }
  // Whether a sign of life is to be sent now.
  bool beat_due(double now_s) {
    if (now_s - beat_s_ <= kBeatEvery) return false;
    beat_s_ = now_s;
    return true;
  }
  bool reconnect_due(double now_s) const { return again_s_ && now_s >= *again_s_; }
  // The other end is silent, though it sends a sign of life every second.
  bool dead(double now_s) const { return now_s - contact_s_ > kDeadAfter; }
  bool given_up(double now_s) const { return now_s - contact_s_ > give_up_s_; }
  double give_up_s() const { return give_up_s_; }

 private:
  static constexpr double kBeatEvery = 2, kDeadAfter = 20, kFirstPause = 0.2, kLongestPause = 10;
  double give_up_s_, contact_s_, beat_s_ = 0, pause_s_ = 0;
  std::optional<double> again_s_;
};

}  // namespace sweep::launch
