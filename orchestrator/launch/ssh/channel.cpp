#include "orchestrator/launch/ssh/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/process.h"
#include "orchestrator/launch/watched_child.h"

namespace sweep::launch {

namespace {

constexpr std::size_t kWordsKept = 4096;

// Pipes of a child's standard input, output and error: the reading and the writing end of each.
class Pipes {
 public:
  Pipes() { ends_.fill(-1); }
  Pipes(const Pipes&) = delete;
  Pipes& operator=(const Pipes&) = delete;
  ~Pipes() {
    for (const int fd : ends_)
      if (fd >= 0) ::close(fd);
  }
  // 0 or an errno.
  int open() {
    for (std::size_t i = 0; i < ends_.size(); i += 2)
      if (::pipe2(&ends_[i], O_CLOEXEC) != 0) return errno;
    return 0;
  }
  // The ends that the child gets.
  int child_in() const { return ends_[0]; }
  int child_out() const { return ends_[3]; }
  int child_err() const { return ends_[5]; }
  // The ends that stay here; the caller closes them.
  int take_input() { return std::exchange(ends_[1], -1); }
  int take_out() { return std::exchange(ends_[2], -1); }
  int take_err() { return std::exchange(ends_[4], -1); }

 private:
  std::array<int, 6> ends_;
};

}  // namespace

// Writes to the standard input of a child process, in order, without waiting. REQUIRES: used on the event
// loop only.
class ChildInput {
 public:
  explicit ChildInput(boost::asio::io_context& io) : in_(io) {}

  void open(int fd) { in_.assign(fd); }
  // `owner` keeps this object alive until everything is written.
  void write(std::string bytes, const std::shared_ptr<void>& owner) {
    unwritten_.push_back(std::move(bytes));
    write_more(owner);
  }
  void close_after(const std::shared_ptr<void>& owner) {  // once everything is written
    closing_ = true;
    write_more(owner);
  }
  void close() {
    boost::system::error_code ignored;
    in_.close(ignored);
  }

 private:
  void write_more(const std::shared_ptr<void>& owner) {
    if (writing_ || !in_.is_open()) return;
    if (unwritten_.empty()) {
      if (closing_) close();
      return;
    }
    writing_ = true;
    boost::asio::async_write(in_, boost::asio::buffer(unwritten_.front()),
                             [this, owner](const boost::system::error_code& error, std::size_t) {
                               writing_ = false;
                               if (error) return;  // the process ends
                               unwritten_.pop_front();
                               write_more(owner);
                             });
  }

  boost::asio::posix::stream_descriptor in_;
  std::deque<std::string> unwritten_;
  bool writing_ = false, closing_ = false;
};

class Channel::Process : public std::enable_shared_from_this<Process> {
 public:
  using Stream = boost::asio::posix::stream_descriptor;

  Process(boost::asio::io_context& io, OnOutput on_output, OnEnded on_ended)
      : io_(io),
        child_(io),
        in_(io),
        out_(io),
        err_(io),
        on_output_(std::move(on_output)),
        on_ended_(std::move(on_ended)) {}

  void start(const std::vector<std::string>& argv) {
    if (auto started = start_child(argv); !started) {
      ends_.words = started.error().message;
      return boost::asio::post(io_, [self = shared_from_this()] { self->conclude(); });
    }
    open_ = 2;
    err_.native_non_blocking(true);
    read(out_, out_buffer_);
    read(err_, err_buffer_);
    child_.on_end([self = shared_from_this()](const ProcessEnd& end) {
      self->ends_.code = end.code;
      self->killed_ ? self->conclude() : self->one_less();
    });
  }

  void write(std::string bytes) { in_.write(std::move(bytes), shared_from_this()); }
  void close_input() { in_.close_after(shared_from_this()); }
  // Then it does not wait for other processes that hold its output open, as the shared connection of ssh
  // does.
  void kill() {
    killed_ = true;
    child_.kill();
  }
  void abandon() {
    on_output_ = nullptr;
    on_ended_ = nullptr;
    boost::system::error_code ignored;
    in_.close();
    for (Stream* each : {&out_, &err_}) each->close(ignored);
    child_.release();
  }

 private:
  // Error: there is no process, and no descriptor is left open.
  Expected<void> start_child(const std::vector<std::string>& argv) {
    Pipes pipes;
    if (const int error = pipes.open(); error != 0)
      return fail(fmt::format("cannot start {}: {}", argv[0], std::strerror(error)));
    ChildProgram wanted{argv};
    wanted.in = pipes.child_in();
    wanted.out = pipes.child_out();
    wanted.err = pipes.child_err();
    wanted.group = ChildProgram::Group::kSession;
    SWEEP_GET(const auto pid, start_program(wanted));
    if (auto watched = child_.watch(pid); !watched)
      return fail(fmt::format("cannot start {}: {}", argv[0], watched.error().message));
    in_.open(pipes.take_input());
    out_.assign(pipes.take_out());
    err_.assign(pipes.take_err());
    return {};
  }
  void read(Stream& from, std::array<char, 65536>& buffer) {
    from.async_read_some(
        boost::asio::buffer(buffer),
        [self = shared_from_this(), &from, &buffer](const boost::system::error_code& ec, std::size_t n) {
          const bool output = &from == &self->out_;
          if (ec) return output ? self->one_less() : void();
          const auto on_output = output ? self->on_output_ : nullptr;  // it may end this channel
          if (on_output) on_output({buffer.data(), n});
          if (!output) self->keep_words({buffer.data(), n});
          self->read(from, buffer);
        });
  }
  void keep_words(std::string_view bytes) {
    ends_.words.append(bytes);
    if (ends_.words.size() > kWordsKept) ends_.words.erase(0, ends_.words.size() - kWordsKept);
  }
  // Output and the process are over. Standard error is not waited for: a process in the background may hold
  // it.
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
  WatchedChild child_;
  ChildInput in_;
  Stream out_, err_;
  OnOutput on_output_;
  OnEnded on_ended_;
  std::array<char, 65536> out_buffer_{}, err_buffer_{};
  Ends ends_;
  int open_ = 0;
  bool killed_ = false;
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
