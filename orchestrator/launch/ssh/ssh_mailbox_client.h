// SshMailboxClient: the end on this machine of the connection to an allocation whose spool is on another host
// (worker/agent/net/bridge.h). It carries the mailbox (MailboxCopy) and connects again when the connection is
// lost. REQUIRES: used on the event loop only; no event after stop().
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "orchestrator/launch/ssh/banner_skipper.h"
#include "orchestrator/launch/ssh/connection_timer.h"
#include "orchestrator/launch/ssh/mailbox_copy.h"
#include "orchestrator/launch/ssh/ssh_shell.h"

namespace sweep::launch {

// The reports of a SshMailboxClient.
class MailboxEvents {
 public:
  virtual ~MailboxEvents() = default;
  virtual void mailbox_attached() = 0;  // after each connection
  virtual void outbox_grew() = 0;       // the copy of the outbox on this machine
  // The agent has ended, and the copy of its outbox is complete.
  virtual void agent_gone() = 0;
  virtual void failed(const std::string& why) = 0;  // for good
  virtual void notice(const std::string& text) = 0;
};

class SshMailboxClient {
 public:
  // give_up_s: after so long without contact it reports failed().
  SshMailboxClient(boost::asio::io_context& io, SshShell& shell, std::string host, std::string line,
                   std::filesystem::path spool, double give_up_s, MailboxEvents& events);
  ~SshMailboxClient();

  void start();
  void push();  // the inbox has grown
  void stop();

 private:
  void connect();
  void heard(std::string_view bytes);
  void obey(const Frame&);
  void attached(std::uint64_t inbox_there);
  void keep(std::uint64_t offset, std::string_view bytes);
  void ended(const Channel::Ends&);
  void fail_for_good(const std::string& why);
  void arm();
  void tick();

  SshShell& shell_;
  const std::string host_, line_;
  MailboxEvents& events_;
  boost::asio::io_context& io_;
  boost::asio::steady_timer timer_;
  MailboxCopy copy_;
  ConnectionTimer connection_;
  std::unique_ptr<Channel> channel_;
  FrameInput input_;
  bool lost_ = false, stopped_ = false;
};

}  // namespace sweep::launch
