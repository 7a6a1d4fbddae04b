// Interrupts: Ctrl-C and SIGTERM as a flag. While an object of this class lives, the two signals do not end
// the process: transfers and pauses check the flag. REQUIRES: made before any thread is started.
#pragma once
#include <csignal>

namespace sweep::exports {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool asked();                // once true, stays true
  bool pause(double seconds);  // false: interrupted before the time was over

 private:
  sigset_t watched_, before_;
  bool asked_ = false;
};

}  // namespace sweep::exports
