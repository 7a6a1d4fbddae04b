#include "worker/agent/node/inbox.h"

#include <spdlog/spdlog.h>
#include <sys/inotify.h>

#include <boost/asio/buffer.hpp>

#include "base/time.h"
#include "schema/codec.h"

namespace sweep::agent {

Inbox::Inbox(boost::asio::io_context& io, std::filesystem::path spool, Mailbox& mailbox,
             Dispatcher& dispatcher, AgentControl& control)
    : spool_(std::move(spool)), mailbox_(mailbox), dispatcher_(dispatcher), control_(control), inotify_(io) {}

void Inbox::open() {
  opened_ = true;
  // Without inotify, the agent's timer looks often enough.
  if (const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); fd >= 0) {
    ::inotify_add_watch(fd, spool_.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    inotify_.assign(fd);
    watch();
  }
  look();
}

void Inbox::watch() {
  inotify_.async_read_some(boost::asio::buffer(events_),
                           [this](const boost::system::error_code& error, std::size_t) {
                             if (error) return;
                             look();
                             watch();
                           });
}

void Inbox::look() {
  if (!opened_) return;
  for (const auto& line : mailbox_.poll()) {
    last_line_s_ = steady_s();
    obey(line);
  }
  dispatcher_.start_waiting();
  control_.leave_when_done();
}

void Inbox::obey(const spool::Line& line) {
  if (line.kind == spool::kAttempt) return push(line);
  if (line.kind == spool::kFinish) {
    const bool now =
        from_json<Finish>(line.body).value_or(Finish()).now;  // a damaged body still ends the work
    return now ? control_.stop("cancelled", EndCause::kCancelled, false) : control_.finish();
  }
  spdlog::warn("inbox line {} is not understood (kind {})", line.seq, line.kind);
}

void Inbox::push(const spool::Line& line) {
  auto attempt = from_json<Attempt>(line.body);
  const i64 world = attempt ? attempt->trial.world() : 0;
  if (attempt && world >= 1 && world <= kMaxRanks && attempt->id >= 1)
    return dispatcher_.push(std::move(*attempt));
  spdlog::error("inbox line {} is no attempt that can be run: {}", line.seq,
                attempt ? "its id or its number of ranks" : attempt.error().message);
}

}  // namespace sweep::agent
