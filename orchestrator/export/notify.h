// Notifier: sends short JSON bodies to a web address and to a command, in the background: who sends waits for nobody. A
// body that cannot be delivered is reported and dropped. REQUIRES: made after signals are set up.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/expected.h"

namespace sweep::exports {

struct NotifyTargets {
  std::string url;      // a POST each; empty: none. It is a secret: no text repeats it
  std::string command;  // for the shell, with the body on standard input; empty: none
  bool any() const { return !url.empty() || !command.empty(); }
};

// Error: the address is none.
Expected<void> checked(const NotifyTargets&);

class Notifier {
 public:
  // `warn` is called from another thread.
  Notifier(NotifyTargets targets, std::function<void(const std::string&)> warn);
  ~Notifier();  // delivers what waits; each body has a limited time
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void send(std::string body);

 private:
  void deliver_all();
  void deliver(const std::string& body);

  NotifyTargets targets_;
  std::function<void(const std::string&)> warn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace sweep::exports
