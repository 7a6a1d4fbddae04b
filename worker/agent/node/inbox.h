// Inbox: reads what the orchestrator asks for and hands it to the dispatcher and the agent. It looks when the
// file changes, and when it is told to (a network filesystem reports no change). REQUIRES: used on the event
// loop only.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "worker/agent/node/agent_control.h"
#include "worker/agent/node/dispatcher.h"
#include "worker/agent/node/mailbox.h"

namespace sweep::agent {

class Inbox {
 public:
  Inbox(boost::asio::io_context& io, std::filesystem::path spool, Mailbox& mailbox, Dispatcher& dispatcher,
        AgentControl& control);

  // Nothing is read before.
  void open();
  void look();
  // When a line was read last, on the steady clock; nullopt: none was.
  std::optional<double> last_line_s() const { return last_line_s_; }

 private:
  void watch();
  void obey(const spool::Line& line);
  void push(const spool::Line& line);

  const std::filesystem::path spool_;
  Mailbox& mailbox_;
  Dispatcher& dispatcher_;
  AgentControl& control_;
  boost::asio::posix::stream_descriptor inotify_;
  std::array<char, 4096> events_{};
  bool opened_ = false;
  std::optional<double> last_line_s_;
};

}  // namespace sweep::agent
