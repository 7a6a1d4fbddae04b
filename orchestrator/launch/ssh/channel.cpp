#include "orchestrator/launch/ssh/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/process.h"

namespace sweep::launch {

namespace {

constexpr std::size_t kWordsKept = 4096;

}  // namespace

class Channel::Process : public std::enable_shared_from_this<Process> {
 public:
  using Stream = boost::asio::posix::stream_descriptor;

  Process(boost::asio::io_context& io, OnOutput on_output, OnEnded on_ended)
      : io_(io),
        in_(io),
        out_(io),
        err_(io),
        gone_(io),
        on_output_(std::move(on_output)),
        on_ended_(std::move(on_ended)) {}

  void start(const std::vector<std::string>& argv) {
    std::array<int, 6> ends{-1, -1, -1, -1, -1, -1};
    const auto pidfd = spawn(argv, ends);
    for (const int fd : {ends[0], ends[3], ends[5]})
      if (fd >= 0) ::close(fd);
    if (!pidfd) {
      for (const int fd : {ends[1], ends[2], ends[4]})
        if (fd >= 0) ::close(fd);
      ends_.words = pidfd.error().message;
      return boost::asio::post(io_, [self = shared_from_this()] { self->conclude(); });
    }
    in_.assign(ends[1]);
    out_.assign(ends[2]);
    err_.assign(ends[4]);
    gone_.assign(*pidfd);
    open_ = 2;
    err_.native_non_blocking(true);
    read(out_, out_buffer_);
    read(err_, err_buffer_);
    watch();
  }

  void write(std::string bytes) {
    unwritten_.push_back(std::move(bytes));
    write_more();
  }
  void close_input() {
    closing_ = true;
    write_more();
  }
  // Then it does not wait for other processes that hold its output open, as the shared connection of ssh does.
  void kill() {
    killed_ = true;
    if (pid_ > 0 && !reaped_) ::kill(pid_, SIGKILL);
  }
  void abandon() {
    on_output_ = nullptr;
    on_ended_ = nullptr;
    boost::system::error_code ignored;
    for (Stream* each : {&in_, &out_, &err_, &gone_}) each->close(ignored);
    if (pid_ <= 0 || reaped_) return;
    kill();
    wait_for(pid_);
    reaped_ = true;
  }

 private:
  // Makes the pipes (of its input, output and error: the reading and the writing end of each) and the process. The value is
  // the descriptor that tells of its end. Error: there is no process, and `ends` has what was opened.
  Expected<int> spawn(const std::vector<std::string>& argv, std::array<int, 6>& ends) {
    const auto cannot = [&] {
      return fail(fmt::format("cannot start {}: {}", argv[0], std::strerror(errno)));
    };
    for (std::size_t i = 0; i < 3; ++i)
      if (::pipe2(&ends[2 * i], O_CLOEXEC) != 0) return cannot();
    ChildProgram wanted{argv};
    wanted.in = ends[0];
    wanted.out = ends[3];
    wanted.err = ends[5];
    wanted.group = ChildProgram::Group::kSession;
    const auto pid = start_program(wanted);
    if (!pid) return tl::unexpected(pid.error());
    const int pidfd = open_pidfd(*pid);
    if (pidfd < 0) {  // no descriptor is left: its end would not be noticed
      const auto error = cannot();
      ::kill(*pid, SIGKILL);
      wait_for(*pid);
      return error;
    }
    pid_ = *pid;
    return pidfd;
  }
  void read(Stream& from, std::array<char, 65536>& buffer) {
    from.async_read_some(
        boost::asio::buffer(buffer),
        [self = shared_from_this(), &from, &buffer](const boost::system::error_code& ec, std::size_t n) {
          const bool output = &from == &self->out_;
          if (ec) return output ? self->one_less() : void();
          const auto hear = output ? self->on_output_ : nullptr;  // it may end this channel
          if (hear) hear({buffer.data(), n});
          if (!output) self->keep_words({buffer.data(), n});
          self->read(from, buffer);
        });
  }
  void write_more() {
    if (writing_ || !in_.is_open()) return;
    if (unwritten_.empty()) {
      boost::system::error_code ignored;
      if (closing_) in_.close(ignored);
      return;
    }
    writing_ = true;
    boost::asio::async_write(in_, boost::asio::buffer(unwritten_.front()),
                             [self = shared_from_this()](const boost::system::error_code& ec, std::size_t) {
                               self->writing_ = false;
                               if (ec) return;  // the process ends: `ended` follows
                               self->unwritten_.pop_front();
                               self->write_more();
                             });
  }
  // A process descriptor can become readable before the end: waitpid decides.
  void watch() {
    gone_.async_wait(Stream::wait_read, [self = shared_from_this()](const boost::system::error_code& ec) {
      if (!ec) self->reap();
    });
  }
  void reap() {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == 0) return watch();
    if (got == pid_) ends_.code = end_of(status).code;
    reaped_ = true;
    killed_ ? conclude() : one_less();
  }
  void keep_words(std::string_view bytes) {
    ends_.words.append(bytes);
    if (ends_.words.size() > kWordsKept) ends_.words.erase(0, ends_.words.size() - kWordsKept);
  }
  // Output and the process are over. Standard error is not waited for: a process in the background may hold it.
  void one_less() {
    if (--open_ == 0) conclude();
  }
  void conclude() {
    for (ssize_t n = 1; n > 0 && err_.is_open();) {
      n = ::read(err_.native_handle(), err_buffer_.data(), err_buffer_.size());
      if (n > 0) keep_words({err_buffer_.data(), static_cast<std::size_t>(n)});
    }
    while (!ends_.words.empty() && ends_.words.back() == '\n') ends_.words.pop_back();
    if (on_ended_) std::exchange(on_ended_, nullptr)(ends_);
  }

  boost::asio::io_context& io_;
  Stream in_, out_, err_, gone_;
  OnOutput on_output_;
  OnEnded on_ended_;
  std::array<char, 65536> out_buffer_{}, err_buffer_{};
  std::deque<std::string> unwritten_;
  Ends ends_;
  pid_t pid_ = 0;
  int open_ = 0;
  bool writing_ = false, closing_ = false, killed_ = false, reaped_ = false;
};

Channel::Channel(boost::asio::io_context& io, const std::vector<std::string>& argv, OnOutput on_output,
                 OnEnded on_ended)
    : process_(std::make_shared<Process>(io, std::move(on_output), std::move(on_ended))) {
  process_->start(argv);
}

Channel::~Channel() {
  process_->abandon();
}

void Channel::write(std::string bytes) {
  process_->write(std::move(bytes));
}

void Channel::close_input() {
  process_->close_input();
}

void Channel::kill() {
  process_->kill();
}

}  // namespace sweep::launch
