// LocalAllocation: one agent of this machine: its process and its mailbox. It reports events through
// `report`, from the event loop only. After an Ended it reports nothing.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>
#include <memory>

#include "orchestrator/launch/local/local.h"
#include "orchestrator/launch/spool_mailbox.h"
#include "orchestrator/launch/watched_child.h"

namespace sweep::launch {

// Calls when a file of a spool may have grown: on a change of its folder, and every 50 ms where the file
// system reports none. REQUIRES: used on the event loop only.
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

class LocalAllocation : public std::enable_shared_from_this<LocalAllocation> {
 public:
  LocalAllocation(boost::asio::io_context& io, const LocalOptions& options, AllocationRequest request,
                  Launcher::Sink report);
  ~LocalAllocation();
  LocalAllocation(const LocalAllocation&) = delete;
  LocalAllocation& operator=(const LocalAllocation&) = delete;

  Expected<void> start();
  Expected<i64> post(std::string_view kind, const nlohmann::json& body);
  void acknowledge(std::uint64_t offset) { mail_.acknowledge(offset); }
  void kill();
  void abandon();  // ends the agent; no further event
  bool ended() const { return ended_; }

 private:
  Expected<void> start_agent();
  void deliver();
  void limit_after_bye();
  void deliver_the_rest(const ProcessEnd&, std::uint64_t before);
  void conclude(const ProcessEnd&);
  void report(const Event& event);

  boost::asio::io_context& io_;
  const LocalOptions options_;
  const AllocationRequest request_;
  Launcher::Sink report_;
  WatchedChild agent_;
  OutboxWatch outbox_;
  boost::asio::steady_timer after_bye_;
  SpoolMailbox mail_;
  bool ended_ = false;
};

}  // namespace sweep::launch
