// Notifier: sends short JSON bodies to a web address and to a command, in the background: who sends waits for nobody. A
// body that cannot be delivered is reported and dropped. REQUIRES: made after signals are set up.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/expected.h"

namespace sweep::exports {

struct NotifyTargets {
  std::string url;      // a POST each; empty: none. It is a secret: no text repeats it
  std::string command;  // command for the shell, with the body on standard input; empty: none
  std::string
      form{};  // the body, with names in braces for the JSON values of a notice; empty: the notice itself
  bool any() const { return !url.empty() || !command.empty(); }
};

// Error: the address is none.
Expected<void> checked(const NotifyTargets&);

class Notifier {
 public:
  // `warn` is called from another thread.
  Notifier(NotifyTargets targets, std::function<void(const std::string&)> warn);
  ~Notifier();  // delivers what waits; after kDrain only what is kSure
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  enum class Weight {
    kSure,   // is tried in any case
    kMinor,  // is left out once one could not be delivered
  };
  void send(std::string body, Weight weight = Weight::kSure);
  const std::string& form() const { return targets_.form; }

 private:
  struct Body {
    std::string text;
    Weight weight;
  };
  void deliver_all();
  bool deliver(const std::string& body);
  void leave_out_minor();  // REQUIRES: the lock

  NotifyTargets targets_;
  std::function<void(const std::string&)> warn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Body> waiting_;
  std::optional<std::chrono::steady_clock::time_point> drained_by_;  // it is being destroyed
  std::thread thread_;
};

}  // namespace sweep::exports
