// SshMailboxClient: the end on this machine of the connection to an allocation whose spool is on another host
// (worker/agent/net/bridge.h). It keeps a copy of the outbox here, byte for byte, sends the inbox there, and connects again when the
// connection is lost. No byte is lost or comes twice: both files only grow, and every byte has its offset.
// REQUIRES: used on the event loop only; no event after stop().
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "orchestrator/launch/ssh/banner_skipper.h"
#include "orchestrator/launch/ssh/ssh_shell.h"
#include "schema/frame.h"
#include "schema/spool.h"

namespace sweep::launch {

class SshMailboxClient {
 public:
  struct Events {
    std::function<void()> attached;  // each time
    std::function<void()> news;      // the copy of the outbox has grown
    std::function<void()> gone;      // the agent has ended, and the copy of its outbox is complete
    std::function<void(const std::string& why)> failed;  // for good
    std::function<void(const std::string& text)> remark;
  };
  // give_up_s: after so long without contact it reports `failed`.
  SshMailboxClient(boost::asio::io_context& io, SshShell& shell, std::string host, std::string line,
                   std::filesystem::path spool, double give_up_s, Events events);
  ~SshMailboxClient();

  void start();
  void push();  // the inbox has grown
  void stop();

 private:
  void connect();
  void heard(std::string_view bytes);
  void obey(const Frame&);
  void ended(const Channel::Ends&);
  void keep(std::uint64_t offset, std::string_view bytes);
  void fail_for_good(const std::string& why);
  void arm();
  void tick();

  boost::asio::io_context& io_;
  SshShell& shell_;
  const std::string host_, line_;
  const std::filesystem::path spool_;
  const double give_up_s_;
  Events events_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<Channel> channel_;
  BannerSkipper greeting_;
  FrameReader reader_{kLongestFrame};
  std::optional<std::uint64_t> inbox_there_;  // how far the inbox has been sent; none: not attached
  double contact_s_, beat_s_ = 0, again_s_ = 0, pause_s_ = 0;
  bool lost_ = false, stopped_ = false;
};

}  // namespace sweep::launch
