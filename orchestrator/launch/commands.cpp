// The home of Boost.Process.
#define BOOST_PROCESS_USE_STD_FS
#include "orchestrator/launch/commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/args.hpp>
#include <boost/process/async_pipe.hpp>
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/environment.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/group.hpp>
#include <boost/process/io.hpp>
#include <boost/process/search_path.hpp>
#include <chrono>
#include <exception>
#include <filesystem>

#include "orchestrator/launch/slurm/slurm_environment.h"

namespace sweep::launch {

namespace bp = boost::process;

namespace {

bp::environment environment_for(const std::vector<std::string>& argv) {
  bp::environment out;
  for (const auto& entry : slurm_environment(argv, environ)) {
    const auto equals = entry.find('=');
    out[entry.substr(0, equals)] = entry.substr(std::min(equals, entry.size() - 1) + 1);
  }
  return out;
}

}  // namespace

class Commands::Running : public std::enable_shared_from_this<Running> {
 public:
  Running(Commands& owner, Answer answer) : owner_(owner), answer_(std::move(answer)), limit_(owner.io_) {}

  void start(std::vector<std::string> argv, double limit_s) {
    const bool named = argv[0].find('/') == std::string::npos;
    const std::filesystem::path program = named ? bp::search_path(argv[0]) : std::filesystem::path(argv[0]);
    if (program.empty()) return refuse(argv[0] + ": there is no such program in PATH");
    try {
      spawn(program, std::move(argv));
    } catch (const std::exception& error) {  // no descriptor is left, no process may be made
      return refuse(program.string() + ": " + error.what());
    }
    read(*out_, said_.out, out_buffer_);
    read(*err_, said_.err, err_buffer_);
    limit_.expires_after(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(limit_s)));
    limit_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      self->said_.timed_out = true;
      self->end();
    });
  }

  // Ends it; nobody is called back.
  void abandon() {
    answer_ = nullptr;
    limit_.cancel();
    end();
    std::error_code ignored;
    if (child_.valid()) child_.wait(ignored);
  }

 private:
  // A group of its own: a terminal's Ctrl-C is for `sweep` alone. bp::limit_handles would close 1 and 2 too.
  void spawn(const std::filesystem::path& program, std::vector<std::string> argv) {
    const auto environment = environment_for(argv);
    argv.erase(argv.begin());
    out_.emplace(owner_.io_);
    err_.emplace(owner_.io_);
    child_ = bp::child(bp::exe = program, bp::args = argv, environment,
                       bp::std_in<bp::null, bp::std_out> * out_, bp::std_err > *err_, group_);
  }
  void refuse(std::string why) {
    said_.err = std::move(why);
    boost::asio::post(owner_.io_, [self = shared_from_this()] { self->tell(); });
  }
  void end() {
    std::error_code ignored;
    if (group_.valid()) group_.terminate(ignored);
    boost::system::error_code closed;
    if (out_) out_->close(closed);
    if (err_) err_->close(closed);
  }
  void read(bp::async_pipe& from, std::string& into, std::array<char, 4096>& buffer) {
    ++reading_;
    from.async_read_some(boost::asio::buffer(buffer),
                         [self = shared_from_this(), &from, &into, &buffer](
                             const boost::system::error_code& error, std::size_t n) {
                           --self->reading_;
                           if (into.size() < kMaxOutputBytes) into.append(buffer.data(), n);
                           if (!error) return self->read(from, into, buffer);
                           if (self->reading_ == 0) self->finished();
                         });
  }
  // Both pipes are closed: the program has ended or does so now.
  void finished() {
    limit_.cancel();
    if (!answer_) return;
    std::error_code error;
    child_.wait(error);
    const int status = child_.native_exit_code();
    if (!error && !said_.timed_out && WIFEXITED(status)) said_.code = WEXITSTATUS(status);
    if (!error && WIFSIGNALED(status)) said_.signal = WTERMSIG(status);
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
  std::optional<bp::async_pipe> out_, err_;
  boost::asio::steady_timer limit_;
  bp::child child_;
  bp::group group_;
  CommandResult said_;
  std::array<char, 4096> out_buffer_{}, err_buffer_{};
  int reading_ = 0;
};

Commands::~Commands() {
  for (const auto& each : running_) each->abandon();
}

void Commands::run(std::vector<std::string> argv, double limit_s, Answer answer) {
  auto made = std::make_shared<Running>(*this, std::move(answer));
  running_.insert(made);
  made->start(std::move(argv), limit_s);
}

CommandResult run_alone(std::vector<std::string> argv, double limit_s) {
  boost::asio::io_context io;
  Commands commands(io);
  CommandResult said;
  commands.run(std::move(argv), limit_s, [&](const CommandResult& answer) { said = answer; });
  io.run();
  return said;
}

std::string last_line(std::string_view said) {
  const auto end = said.find_last_not_of(" \r\n");
  if (end == std::string_view::npos) return {};
  said = said.substr(0, end + 1);
  return std::string(said.substr(said.find_last_of('\n') + 1));  // npos + 1 is 0
}

}  // namespace sweep::launch
