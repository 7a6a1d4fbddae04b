#include "worker/agent/node/node_agent.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>

#include "worker/agent/evidence/node_probe.h"
#include "worker/agent/process/process.h"

namespace sweep::agent {
namespace {
// Also finds children whose signal was merged with another's.
constexpr auto kNodeTick = std::chrono::milliseconds(200);
// Ticks until a head agent that does not read is given up.
constexpr int kTicksForHead = 15;
// Exit code.
constexpr int kHeadLost = 4;
}  // namespace

NodeAgent::NodeAgent(const Options& options, const SandboxInfo& inside)
    : options_(options), inside_(inside), runner_(io_, options, inside, *this), timer_(io_) {}

int NodeAgent::run(const Join& join) {
  NodeRecord record = probe_node(runner_.nvml());
  record.node = options_.node;
  auto head = connect_to_head(io_, join, options_.lease_s, {std::move(record)});
  if (!head) {
    spdlog::error("{}", head.error().message);
    tell_launcher(options_.ready_fd, not_ready(head.error().message));
    return 1;
  }
  link_ = head->link;
  runner_.set_endpoint(head->here);
  runner_.begin();
  spdlog::info("node {} serves {} on {} ({})", options_.node, link_->peer(), head->here.address,
               head->here.interface);
  tell_launcher(options_.ready_fd, ready_line(inside_));
  link_->start([this](const AgentMessage& message) { obey(message); },
               [this](const std::string& why) {
                 if (!leaving_.empty() && runner_.idle()) return;
                 spdlog::warn("the head agent is lost: {}", why);
                 code_ = kHeadLost;
                 stop("head lost", EndCause::kAgentStopping, true);
               });
  arm();
  io_.run();
  return code_;
}

void NodeAgent::obey(const AgentMessage& message) {
  if (std::holds_alternative<Leave>(message)) return stop("finished", EndCause::kAgentStopping, true);
  if (leaving_.empty() || !std::holds_alternative<NodePart>(message)) runner_.obey(message);
}

void NodeAgent::arm() {
  timer_.expires_after(kNodeTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    beat(inside_);
    runner_.reap();
    leave_when_done();
    arm();
  });
}

void NodeAgent::stop(const std::string& reason, EndCause cause, bool at_once) {
  if (leaving_.empty()) {
    leaving_ = reason;
    link_->send(to_frame(Leave{reason}));
  }
  runner_.end_all(cause, at_once);
  boost::asio::post(io_, [this] { leave_when_done(); });
}

void NodeAgent::leave_when_done() {
  if (leaving_.empty() || !runner_.idle() || io_.stopped()) return;
  runner_.leave();
  link_->close();
  if (!link_->written() && ++ticks_unwritten_ < kTicksForHead) return;  // the next tick looks again
  io_.stop();
}

}  // namespace sweep::agent
