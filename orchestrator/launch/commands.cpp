#include "orchestrator/launch/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/files.h"
#include "base/process.h"
#include "orchestrator/launch/slurm/slurm_environment.h"

namespace sweep::launch {

class Commands::Running : public std::enable_shared_from_this<Running> {
 public:
  using Stream = boost::asio::posix::stream_descriptor;
  using Answer = std::function<void(const CommandResult&)>;
  Running(Commands& owner, Answer answer)
      : owner_(owner), answer_(std::move(answer)), out_(owner.io_), err_(owner.io_), limit_(owner.io_) {}

  void start(std::vector<std::string> argv, double limit_s) {
    if (auto spawned = spawn(std::move(argv)); !spawned) return refuse(spawned.error().message);
    start_coroutine(owner_.io_, read(shared_from_this(), out_, said_.out));
    start_coroutine(owner_.io_, read(shared_from_this(), err_, said_.err));
    limit_.expires_after(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(limit_s)));
    limit_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      self->said_.timed_out = true;
      self->end();
    });
  }

  // Ends it; no answer follows.
  void abandon() {
    answer_ = nullptr;
    limit_.cancel();
    end();
    if (pid_ > 0) wait_for(std::exchange(pid_, 0));
  }

 private:
  // A group of its own: a terminal's Ctrl-C is for `sweep` alone, and the time limit ends what it started,
  // too.
  Expected<void> spawn(std::vector<std::string> argv) {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0) return fail(argv[0] + ": " + std::strerror(errno));
    out_.assign(out[0]);
    const Descriptor out_of_child(out[1]);
    if (::pipe2(err, O_CLOEXEC) != 0) return fail(argv[0] + ": " + std::strerror(errno));
    err_.assign(err[0]);
    const Descriptor err_of_child(err[1]);
    ChildProgram wanted;
    wanted.environment = slurm_environment(argv, environ);
    wanted.argv = std::move(argv);
    wanted.out = out[1];
    wanted.err = err[1];
    wanted.group = ChildProgram::Group::kNew;
    return start_program(wanted).map([this](pid_t pid) { pid_ = pid; });
  }
  void refuse(std::string why) {
    said_.err = std::move(why);
    boost::asio::post(owner_.io_, [self = shared_from_this()] { self->tell(); });
  }
  void end() {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
    boost::system::error_code ignored;
    out_.close(ignored);
    err_.close(ignored);
  }
  awaitable<void> read(std::shared_ptr<Running>, Stream& from, std::string& into) {
    std::array<char, 4096> buffer;
    for (bool more = true; more;) {
      const auto [error, bytes] = co_await from.async_read_some(boost::asio::buffer(buffer), kAsTuple);
      if (into.size() < kMaxOutputBytes) into.append(buffer.data(), bytes);
      more = !error;
    }
    if (--reading_ == 0) finished();
  }
  // Both pipes are closed: the program has ended or does so now.
  void finished() {
    limit_.cancel();
    if (!answer_) return;
    const ProcessEnd end = wait_for(std::exchange(pid_, 0));
    said_.signal = end.signal;
    if (!said_.timed_out) said_.code = end.code;
    tell();
  }
  void tell() {
    if (!answer_) return;  // abandoned: the owner may be gone
    const auto self = shared_from_this();
    const auto answer = std::exchange(answer_, nullptr);
    owner_.running_.erase(self);
    answer(said_);
  }

  Commands& owner_;
  Answer answer_;
  Stream out_, err_;
  boost::asio::steady_timer limit_;
  pid_t pid_ = 0;  // 0: there is no process, or it was waited for
  CommandResult said_;
  int reading_ = 2;
};

Commands::~Commands() {
  for (const auto& each : running_) each->abandon();
}

awaitable<CommandResult> Commands::run(std::vector<std::string> argv, double limit_s) {
  return wait_for_call<CommandResult>(
      [this, argv = std::move(argv), limit_s](Running::Answer answer) mutable {
        const auto made = std::make_shared<Running>(*this, std::move(answer));
        running_.insert(made);
        made->start(std::move(argv), limit_s);
      });
}

awaitable<CommandResult> Commands::run_counted(std::vector<std::string> argv, double limit_s,
                                               const std::function<void()>& counted) {
  counted();
  return run(std::move(argv), limit_s);
}

CommandResult run_alone(std::vector<std::string> argv, double limit_s) {
  boost::asio::io_context io;
  Commands commands(io);
  return run_to_end(io, commands.run(std::move(argv), limit_s));
}

std::string last_line(std::string_view said) {
  const auto end = said.find_last_not_of(" \r\n");
  if (end == std::string_view::npos) return {};
  said = said.substr(0, end + 1);
  return std::string(said.substr(said.find_last_of('\n') + 1));  // npos + 1 is 0
}

}  // namespace sweep::launch
