// Commands: runs the programs of batch systems without a shell and without blocking the event loop. Each has
// a limit of time and of output, and the environment that slurm_environment.h leaves. Its destructor ends
// what still runs. A program that cannot be started is an answer too.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/coroutine.h"

namespace sweep::launch {

struct CommandResult {
  int code = -1;           // exit code; -1: it never ran, was ended by a signal, or by the time limit
  bool timed_out = false;  // its effects until then are not known
  int signal = 0;          // the signal that ended it; its effects until then are not known
  std::string out, err;    // at most kMaxOutputBytes bytes each
  bool ok() const { return code == 0 && !timed_out; }
};
inline constexpr std::size_t kMaxOutputBytes = 16u << 20;

class Commands {
 public:
  explicit Commands(boost::asio::io_context& io) : io_(io) {}
  virtual ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // argv[0] is looked up in PATH. The coroutine is awaited while the object lives; it goes on from the event loop, and
  // not after the destructor.
  virtual awaitable<CommandResult> run(std::vector<std::string> argv, double limit_s);
  // The same. `counted` is called first.
  awaitable<CommandResult> run_counted(std::vector<std::string> argv, double limit_s,
                                       const std::function<void()>& counted);

 private:
  class Running;
  boost::asio::io_context& io_;
  std::set<std::shared_ptr<Running>> running_;
};

// Runs one program and waits for it, for callers without an event loop.
CommandResult run_alone(std::vector<std::string> argv, double limit_s);

// The last line of an output: the reason of a failure, or an answer after a greeting.
std::string last_line(std::string_view said);

}  // namespace sweep::launch
