// Zygote: a rank program kept loaded that forks ranks on request (schema/rank_launch.h). It owns the process
// and its channel, restarts it when it dies, and gives up (usable() is false: ranks are executed instead)
// after three deaths in a row without a single rank. REQUIRES: used on the event loop only; its owner tells
// it of its death by exited().
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
  bool usable();  // starts it if need be
  void start(const RankLaunch& launch, i64 owner, Answer answer);
  // No answer of this owner's is called any more; a rank that is being forked for it all the same is killed.
  void withdraw(i64 owner);
  bool exited(pid_t pid);  // true: it was this zygote
  pid_t pid() const { return pid_; }
  void stop();  // kills it; every open request is answered with an error

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
  void fail_all(const std::string& why);

  boost::asio::io_context& io_;
  std::string program_, token_;
  boost::asio::posix::stream_descriptor channel_;
  pid_t pid_ = 0;
  bool ready_ = false, stopped_ = false;
  int deaths_ = 0;             // in a row, none of them after a rank was forked
  std::uint64_t life_ = 0;     // which process a late completion belongs to
  std::deque<Request> asked_;  // the front one was sent when in_flight_
  bool in_flight_ = false;
  std::array<char, 65536> buffer_{};
};

}  // namespace sweep::agent
