// An exception that a thread of LibTorch does not catch: NCCL's watchdog reports an asynchronous error so,
// while the rank waits for a kernel that never ends. It must not end the process before the rank's record is
// written.
#pragma once
#include <atomic>
#include <functional>

namespace sweep::rank {

class UncaughtExceptions {
 public:
  // While this lives, such an exception calls `end` inside a catch block, and the process exits with its
  // answer.
  explicit UncaughtExceptions(std::function<int()> end);
  ~UncaughtExceptions();
  UncaughtExceptions(const UncaughtExceptions&) = delete;
  UncaughtExceptions& operator=(const UncaughtExceptions&) = delete;

  // The thread that comes first writes the record; does not return for any other.
  void claim();

 private:
  [[noreturn]] static void terminate();
  static std::atomic<UncaughtExceptions*> installed;
  std::function<int()> end_;
  std::atomic<bool> claimed_ = false;
};

}  // namespace sweep::rank
