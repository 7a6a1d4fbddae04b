// LocalAllocation: one agent of this machine: its process, the writing end of its inbox, the reading end of
// its outbox. It reports events through `report`, from the event loop only. After an Ended it reports nothing.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "orchestrator/launch/local/local.h"
#include "orchestrator/launch/spool_mailbox.h"

namespace sweep::launch {

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
  Expected<void> spawn_agent();
  void watch_agent();
  void watch_outbox();
  void arm();
  void deliver();
  void last_words(std::uint64_t before);
  void conclude();
  void say(const Event& event);

  boost::asio::io_context& io_;
  const LocalOptions options_;
  const AllocationRequest request_;
  Launcher::Sink report_;
  boost::asio::posix::stream_descriptor pidfd_, inotify_;
  boost::asio::steady_timer poll_;
  std::array<char, 4096> events_{};
  SpoolMailbox mail_;
  pid_t pid_ = 0;
  int status_ = 0;
  bool reaped_ = false, ended_ = false;
};

}  // namespace sweep::launch
