// LocalAllocation: one agent of this machine: its process and its mailbox. It reports events through
// `report`, from the event loop only. After an Ended it reports nothing.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>

#include "orchestrator/launch/local/local.h"
#include "orchestrator/launch/local/outbox_watch.h"
#include "orchestrator/launch/spool_mailbox.h"
#include "orchestrator/launch/watched_child.h"

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
  Expected<void> start_agent();
  void deliver();
  void deliver_the_rest(const ProcessEnd&, std::uint64_t before);
  void conclude(const ProcessEnd&);
  void report(const Event& event);

  boost::asio::io_context& io_;
  const LocalOptions options_;
  const AllocationRequest request_;
  Launcher::Sink report_;
  WatchedChild agent_;
  OutboxWatch outbox_;
  SpoolMailbox mail_;
  bool ended_ = false;
};

}  // namespace sweep::launch
