// SshMailboxClient: the end on this machine of the connection to an allocation whose spool is on another host
// (worker/agent/net/bridge.h). It carries the mailbox (MailboxCopy) and connects again when the connection is
// lost. REQUIRES: used on the event loop only; no event after stop().
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "orchestrator/launch/ssh/banner_skipper.h"
#include "orchestrator/launch/ssh/connection_timer.h"
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
  virtual void failed(const std::string& why) = 0;  // it has failed for good
  virtual void notice(const std::string& text) = 0;
};

// The two files of a mailbox whose other end is on another host: the inbox is sent there from where it ends
// there, the outbox is copied here byte for byte. No byte is lost or comes twice: both files only grow, and
// every byte has its offset.
class MailboxCopy {
 public:
  explicit MailboxCopy(std::filesystem::path spool) : spool_(std::move(spool)) {}

  struct InboxPart {
    std::uint64_t offset = 0;
    std::string bytes;
  };
  void detach() { inbox_there_.reset(); }
  // The inbox there has so many bytes. False: more than ours has.
  bool attach(std::uint64_t inbox_there);
  bool attached() const { return inbox_there_.has_value(); }
  // The next part of the inbox that is to be sent; it counts as sent. nullopt: nothing is to be sent.
  std::optional<InboxPart> next_of_inbox();

  std::uint64_t outbox_size() const;
  // Keeps bytes of the outbox there. Whether the copy has grown.
  Expected<bool> keep(std::uint64_t offset, std::string_view bytes);

 private:
  const std::filesystem::path spool_;
  // How far the inbox has been sent; nullopt: not attached.
  std::optional<std::uint64_t> inbox_there_;
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
  void receive(std::string_view bytes);
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
  // Why connections failed since it was lost: each is told once, the last one at the end.
  std::set<std::string> told_;
  std::string last_failure_;
};

}  // namespace sweep::launch
