// Commands: runs Slurm's programs without a shell and without blocking the event loop, each bounded in time and in what
// it may say, with the environment that slurm_environment.h leaves. Its destructor ends what still runs and calls nobody back. Refuses nothing: a
// program that cannot be started is an answer too.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sweep::launch {

struct CommandResult {
  int code = -1;           // exit code; -1: it never ran, was ended by a signal, or by the time limit
  bool timed_out = false;  // what it did before its end is not known
  int signal = 0;          // that ended it: nor is it then
  std::string out, err;    // at most kMaxOutputBytes bytes each
  bool ok() const { return code == 0 && !timed_out; }
};
inline constexpr std::size_t kMaxOutputBytes = 16u << 20;

class Commands {
 public:
  using Answer = std::function<void(const CommandResult&)>;
  explicit Commands(boost::asio::io_context& io) : io_(io) {}
  virtual ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // argv[0] is looked up in PATH. The answer comes from the event loop, exactly once.
  virtual void run(std::vector<std::string> argv, double limit_s, Answer answer);

 private:
  class Running;
  boost::asio::io_context& io_;
  std::set<std::shared_ptr<Running>> running_;
};

// One program, waited for: for commands that have no event loop of their own.
CommandResult run_alone(std::vector<std::string> argv, double limit_s);

// The last line of what a program said: where it says why it failed, or its answer behind a greeting.
std::string last_line(std::string_view said);

}  // namespace sweep::launch
