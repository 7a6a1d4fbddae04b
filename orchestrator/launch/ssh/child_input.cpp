#include "orchestrator/launch/ssh/child_input.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace sweep::launch {

void ChildInput::write(std::string bytes, const std::shared_ptr<void>& owner) {
  unwritten_.push_back(std::move(bytes));
  write_more(owner);
}

void ChildInput::close_after(const std::shared_ptr<void>& owner) {
  closing_ = true;
  write_more(owner);
}

void ChildInput::close() {
  boost::system::error_code ignored;
  in_.close(ignored);
}

void ChildInput::write_more(const std::shared_ptr<void>& owner) {
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

}  // namespace sweep::launch
