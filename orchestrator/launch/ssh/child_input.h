// ChildInput: writes to the standard input of a child process, in order, without waiting. REQUIRES: used on
// the event loop only.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <memory>
#include <string>

namespace sweep::launch {

class ChildInput {
 public:
  explicit ChildInput(boost::asio::io_context& io) : in_(io) {}

  void open(int fd) { in_.assign(fd); }
  // `owner` keeps this object alive until everything is written.
  void write(std::string bytes, const std::shared_ptr<void>& owner);
  void close_after(const std::shared_ptr<void>& owner);  // once everything is written
  void close();

 private:
  void write_more(const std::shared_ptr<void>& owner);

  boost::asio::posix::stream_descriptor in_;
  std::deque<std::string> unwritten_;
  bool writing_ = false, closing_ = false;
};

}  // namespace sweep::launch
