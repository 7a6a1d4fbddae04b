// WatchedChild: a child process whose end the event loop reports. It starts nothing. REQUIRES: used on the
// event loop only.
#pragma once
#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

#include "base/expected.h"
#include "base/process.h"

namespace sweep::launch {

class WatchedChild {
 public:
  explicit WatchedChild(boost::asio::io_context& io) : gone_(io) {}

  // Watches this child from now on. Error: its end could not be noticed; it is ended, and nothing is left of
  // it.
  Expected<void> watch(pid_t child);
  // Called once when the child has ended; never after release() or unwatch(). `ended` keeps this object
  // alive.
  void on_end(std::function<void(const ProcessEnd&)> ended);
  void kill();     // `ended` follows
  void release();  // ends it and waits for it; `ended` does not follow
  void unwatch();  // `ended` does not follow; the child is left as it is

  pid_t pid() const { return pid_; }

 private:
  bool runs() const { return pid_ > 0 && !reaped_; }

  boost::asio::posix::stream_descriptor gone_;
  pid_t pid_ = 0;
  bool reaped_ = false;
};

}  // namespace sweep::launch
