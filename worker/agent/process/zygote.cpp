// The zygote's channel: one request, one answer, in order.
#include "worker/agent/process/zygote.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "schema/codec.h"
#include "worker/agent/process/spawn.h"

namespace sweep::agent {

namespace {
constexpr int kMaxDeaths = 3;
}

Zygote::Zygote(boost::asio::io_context& io, std::string program, std::string token)
    : io_(io), program_(std::move(program)), token_(std::move(token)), channel_(io) {}

Zygote::~Zygote() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

bool Zygote::usable() {
  return !stopped_ && deaths_ < kMaxDeaths && (pid_ > 0 || spawn_it());
}

bool Zygote::spawn_it() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  Spawn wanted;
  wanted.argv = {program_, "zygote"};
  wanted.token = token_;
  wanted.channel = ends[1];
  const auto pid = spawn(wanted);
  ::close(ends[1]);
  if (!pid) {
    ::close(ends[0]);
    spdlog::warn("no zygote: {}", pid.error().message);
    deaths_ = kMaxDeaths;
    return false;
  }
  pid_ = *pid;
  ready_ = in_flight_ = false;
  ++life_;
  channel_ = boost::asio::posix::stream_descriptor(io_, ends[0]);
  channel_.non_blocking(true);
  receive();
  return true;
}

void Zygote::receive() {
  channel_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this, life = life_](const boost::system::error_code& error) {
                        if (error || life != life_ || !channel_.is_open()) return;
                        const ssize_t got =
                            ::recv(channel_.native_handle(), buffer_.data(), buffer_.size(), 0);
                        // exited() follows at its end.
                        if (got == 0) return;
                        if (got > 0) received(static_cast<std::size_t>(got));
                        if (life == life_ && channel_.is_open()) receive();
                      });
}

void Zygote::received(std::size_t bytes) {
  const auto said = from_text<ZygoteAnswer>(std::string_view(buffer_.data(), bytes));
  if (!ready_) {
    ready_ = said && said->ready;
    return send_next();
  }
  if (!in_flight_ || asked_.empty()) return;
  if (said && said->pid > 0) {
    deaths_ = 0;
    answer_front(static_cast<pid_t>(said->pid));
  } else if (said && !said->error.empty()) {
    answer_front(fail("the zygote reports: " + said->error));
  } else {
    answer_front(fail("the zygote's answer is neither a pid nor an error"));
  }
}

void Zygote::withdraw(i64 owner) {
  const auto sent = asked_.begin() + (in_flight_ ? 1 : 0);
  if (in_flight_ && asked_.front().owner == owner)
    asked_.front().answer = [](const Expected<pid_t>& pid) {
      if (pid) ::kill(*pid, SIGKILL);
    };
  asked_.erase(std::remove_if(sent, asked_.end(), [&](const Request& r) { return r.owner == owner; }),
               asked_.end());
}

void Zygote::start(const RankLaunch& launch, i64 owner, Answer answer) {
  asked_.push_back({to_text(launch), owner, std::move(answer)});
  if (!usable()) {
    boost::asio::post(io_, [this] { fail_all("there is no zygote"); });
    return;
  }
  send_next();
}

void Zygote::send_next() {
  if (!ready_ || in_flight_ || asked_.empty() || !channel_.is_open()) return;
  const std::string& bytes = asked_.front().bytes;
  const auto sent = ::send(channel_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const int error = sent < 0 ? errno : 0;
  if (error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM) return send_when_writable();
  in_flight_ = true;
  if (error == EMSGSIZE) return answer_front(fail("the request is too long for the zygote's channel"));
  if (error != 0)  // it died: exited() will follow
    spdlog::warn("the zygote does not take a request: {}", std::strerror(error));
}

void Zygote::send_when_writable() {
  channel_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                      [this, life = life_](const boost::system::error_code& error) {
                        if (!error && life == life_) send_next();
                      });
}

void Zygote::answer_front(const Expected<pid_t>& pid) {
  const Answer answer = std::move(asked_.front().answer);
  asked_.pop_front();
  in_flight_ = false;
  answer(pid);
  send_next();
}

bool Zygote::exited(pid_t pid) {
  if (pid != pid_ || pid <= 0) return false;
  for (ssize_t got = 1; got > 0 && channel_.is_open();) {  // answers it gave before it died
    got = ::recv(channel_.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got > 0) received(static_cast<std::size_t>(got));
  }
  pid_ = 0;
  ready_ = false;
  boost::system::error_code ignored;
  channel_.close(ignored);
  if (!stopped_)
    spdlog::warn("the zygote died; {}", ++deaths_ < kMaxDeaths ? "a new one starts" : "giving it up");
  fail_all("the zygote died");
  usable();  // warm again before the next attempt
  return true;
}

void Zygote::fail_all(const std::string& why) {
  in_flight_ = false;
  // An answer may withdraw requests of its owner that are still to be answered.
  for (std::size_t most = asked_.size(); most > 0 && !asked_.empty(); --most) {
    const Answer answer = std::move(asked_.front().answer);
    asked_.pop_front();
    answer(fail(why));
  }
}

void Zygote::stop() {
  stopped_ = true;
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  fail_all("the agent stops");
}

}  // namespace sweep::agent
