#include "orchestrator/launch/watched_child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
namespace sweep::launch {

Expected<void> WatchedChild::watch(pid_t child) {
  pid_ = child;
  const int fd = open_pidfd(child);
  if (fd < 0) {
    const int cause = errno;
    release();
    return fail(fmt::format("pidfd_open failed: {}; Linux 5.3 or newer is needed, and a free descriptor",
                            std::strerror(cause)));
  }
  gone_.assign(fd);
  return {};
}

// A process descriptor can become readable before the end: waitpid decides.
void WatchedChild::on_end(std::function<void(const ProcessEnd&)> ended) {
  gone_.async_wait(gone_.wait_read,
                   [this, ended = std::move(ended)](const boost::system::error_code& error) mutable {
                     if (error || !gone_.is_open()) return;
                     int status = 0;
                     const pid_t got = ::waitpid(pid_, &status, WNOHANG);
                     if (got == 0) return on_end(std::move(ended));
                     reaped_ = true;
                     ended(got == pid_ ? end_of(status) : ProcessEnd{});
                   });
}

void WatchedChild::kill() {
  if (runs()) ::kill(pid_, SIGKILL);
}

void WatchedChild::release() {
  unwatch();
  if (!runs()) return;
  kill();
  wait_for(pid_);
  reaped_ = true;
}

void WatchedChild::unwatch() {
  boost::system::error_code ignored;
  gone_.close(ignored);
}

}  // namespace sweep::launch
