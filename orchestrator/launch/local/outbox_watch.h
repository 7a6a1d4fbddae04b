// OutboxWatch: calls when a file of a spool may have grown: on a change of its folder, and every 50 ms where
// the file system reports none. REQUIRES: used on the event loop only.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>

namespace sweep::launch {

class OutboxWatch {
 public:
  explicit OutboxWatch(boost::asio::io_context& io) : inotify_(io), poll_(io) {}

  // `look` keeps this object alive until stop().
  void start(const std::filesystem::path& spool, const std::function<void()>& look);
  void stop();

 private:
  void wait_for_change(const std::function<void()>& look);
  void wait_for_timer(const std::function<void()>& look);

  boost::asio::posix::stream_descriptor inotify_;
  boost::asio::steady_timer poll_;
  std::array<char, 4096> events_{};
  bool stopped_ = false;
};

}  // namespace sweep::launch
