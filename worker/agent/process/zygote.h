// Zygote: a loaded rank program that forks ranks on request (schema/rank_launch.h). It owns the process and
// its channel and starts it again when it dies. After three deaths in a row without a rank, usable() is
// false, and ranks are executed instead. REQUIRES: used on the event loop only; its owner reports its death
// by exited().
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <string>

#include "schema/rank_launch.h"

namespace sweep::agent {

class Zygote {
 public:
  using Answer = std::function<void(const Expected<pid_t>&)>;

  Zygote(boost::asio::io_context& io, std::string program, std::string token);
  ~Zygote();
  // Starts it if need be.
  bool usable();
  void start(const RankLaunch& launch, i64 owner, Answer answer);
  // No answer of this owner is called any more. A rank that is being forked for it is killed.
  void withdraw(i64 owner);
  // True: it was this zygote.
  bool exited(pid_t pid);
  pid_t pid() const { return pid_; }
  // Kills it; every open request is answered with an error.
  void stop();

 private:
  struct Request {
    std::string bytes;
    i64 owner = 0;
    Answer answer;
  };
  bool spawn_it();
  void receive();
  void received(std::size_t bytes);
  void send_next();
  void send_when_writable();
  void answer_front(const Expected<pid_t>& pid);
  void fail_all(const std::string& why);

  boost::asio::io_context& io_;
  std::string program_, token_;
  boost::asio::posix::stream_descriptor channel_;
  pid_t pid_ = 0;
  bool ready_ = false, stopped_ = false;
  // Deaths in a row, without a rank between them.
  int deaths_ = 0;
  // Counts the processes: a late completion may belong to an earlier one.
  std::uint64_t life_ = 0;
  // The front one was sent if in_flight_.
  std::deque<Request> asked_;
  bool in_flight_ = false;
  std::array<char, 65536> buffer_{};
};

}  // namespace sweep::agent
