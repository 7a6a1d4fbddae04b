// The event loop of an allocation's agent: from joining to left.
#include "worker/agent/node/agent.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "base/time.h"
#include "schema/codec.h"
#include "schema/version.h"
#include "worker/agent/process/process.h"

namespace sweep::agent {

namespace {
// Also how often the inbox is read where inotify reports nothing (network filesystems).
constexpr auto kTick = std::chrono::milliseconds(50);
constexpr int kNodeUnclean = 3;  // exit code
}  // namespace

Agent::Agent(const Options& options, const SandboxInfo& inside, Mailbox mailbox)
    : options_(options),
      inside_(inside),
      mailbox_(std::move(mailbox)),
      nodes_(io_, options, inside, mailbox_, *this),
      dispatcher_(io_, options, life_, mailbox_, nodes_, *this),
      inbox_(io_, options.spool, mailbox_, dispatcher_, *this),
      limits_(options, steady_s()),
      screening_(io_, options, nodes_, dispatcher_, mailbox_),
      timer_(io_) {}

int Agent::run() {
  if (const auto opened = nodes_.open(dispatcher_); !opened) {
    spdlog::error("{}", opened.error().message);
    tell_launcher(options_.ready_fd, not_ready(opened.error().message));
    return 1;
  }
  arm();
  nodes_.check_joined();
  io_.run();
  return dispatcher_.node_unclean() ? kNodeUnclean : 0;
}

void Agent::nodes_ready() {
  if (options_.screen == Screen::kNone) return serve();
  if (life_.apply(AgentEvent::kScreen)) screening_.start([this] { screened(); });
}

void Agent::screened() {
  if (life_.leaves()) return leave_when_done();
  screening_.judge();
  serve();
}

void Agent::serve() {
  if (!life_.apply(AgentEvent::kServe)) return;
  const NodeRecord node = nodes_.records().at(0);
  mailbox_.send(spool::kHello,
                to_json(AgentHello{outside_pid(inside_, ::getpid()), node.host, kVersion,
                                   dispatcher_.placement().usable_count(), inside_.pid_namespace}));
  mailbox_.send(spool::kNode, to_json(node));
  inbox_.open();
}

void Agent::arm() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void Agent::tick() {
  if (life_.is(AgentState::kLeft)) return;
  beat(inside_);
  if (mailbox_.backlog()) {
    mailbox_.flush();
    dispatcher_.start_waiting();
  }
  nodes_.check_joined();
  inbox_.look();
  nodes_.look();
  check_limits();
  leave_when_done();
  arm();
}

void Agent::check_limits() {
  if (!life_.leaves()) {
    AgentLimits::Activity activity;
    activity.busy = !life_.takes_work() || !dispatcher_.idle();
    activity.out_of_time = dispatcher_.out_of_time();
    activity.last_line_s = inbox_.last_line_s();
    activity.unwritten = mailbox_.backlog();
    if (const auto reason = limits_.exceeded(activity, steady_s()))
      stop(*reason, EndCause::kAgentStopping, false);
  }
  if (!limits_.mailbox_lost(mailbox_.gone())) return;
  spdlog::error("{} is gone or was cut: the folder was changed while it was in use",
                spool::outbox(options_.spool).string());
  stop("mailbox gone", EndCause::kAgentStopping, true);
}

void Agent::finish() {
  life_.apply(AgentEvent::kFinish);
}

void Agent::stop(const std::string& reason, EndCause cause, bool at_once) {
  life_.leave(reason);
  at_once_ = at_once_ || at_once;
  dispatcher_.drop_waiting(cause);
  dispatcher_.running().end_all(cause, at_once);
  boost::asio::post(io_, [this] { leave_when_done(); });
}

void Agent::too_few_nodes() {
  life_.leave(dispatcher_.node_unclean() ? "node unclean" : "nodes lost" + nodes_.absent());
  dispatcher_.drop_waiting(EndCause::kAgentStopping);
}

void Agent::leave_when_done() {
  if (life_.is(AgentState::kFinishing) && dispatcher_.placement().empty()) life_.leave("finished");
  if (!life_.leaves() || !dispatcher_.running().empty() || !nodes_.runner().idle()) return;
  if (life_.apply(AgentEvent::kByeSent)) mailbox_.send(spool::kBye, to_json(Leave{life_.reason()}));
  if (life_.is(AgentState::kLeft) || (mailbox_.backlog() && !at_once_ && !limits_.disk_given_up())) return;
  life_.apply(AgentEvent::kClose);
  timer_.cancel();
  nodes_.leave();
}

}  // namespace sweep::agent
