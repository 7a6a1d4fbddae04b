#include "orchestrator/launch/local/outbox_watch.h"

#include <sys/inotify.h>

#include <boost/asio/buffer.hpp>
#include <chrono>

namespace sweep::launch {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

}  // namespace

void OutboxWatch::start(const std::filesystem::path& spool, const std::function<void()>& look) {
  if (const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); fd >= 0) {  // else the timer alone looks
    ::inotify_add_watch(fd, spool.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    inotify_.assign(fd);
    wait_for_change(look);
  }
  wait_for_timer(look);
}

void OutboxWatch::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  inotify_.close(ignored);
  poll_.cancel();
}

void OutboxWatch::wait_for_change(const std::function<void()>& look) {
  inotify_.async_read_some(boost::asio::buffer(events_),
                           [this, look](const boost::system::error_code& error, std::size_t) {
                             if (error || stopped_) return;
                             look();
                             if (!stopped_) wait_for_change(look);
                           });
}

void OutboxWatch::wait_for_timer(const std::function<void()>& look) {
  poll_.expires_after(kPoll);
  poll_.async_wait([this, look](const boost::system::error_code& error) {
    if (error || stopped_) return;
    look();
    if (!stopped_) wait_for_timer(look);
  });
}

}  // namespace sweep::launch
