// The event loop: inbox, attempts, the orchestrator's presence, the end.
#include "worker/agent/agent.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include "base/time.h"
#include "schema/codec.h"
#include "schema/version.h"
#include "worker/agent/node_probe.h"

namespace sweep::agent {

namespace {
constexpr auto kTick =
    std::chrono::milliseconds(50);  // inbox poll where inotify says nothing (network filesystems)
constexpr int kTicksForDisk = 100;  // how long a leaving agent waits for a full disk: 5 s
constexpr int kTicksGone =
    100;  // looks in a row that find no mailbox: a file system may be away for a moment
constexpr auto kForNodesToLeave = std::chrono::seconds(3);
constexpr auto kForStepToEnd =
    std::chrono::seconds(10);  // srun waits until Slurm has heard of every task's end

}  // namespace

Agent::Agent(const Options& options, const SandboxInfo& inside, Mailbox mailbox)
    : options_(options),
      inside_(inside),
      mailbox_(std::move(mailbox)),
      placement_(options.nodes, options.slots, options.whole_nodes),
      time_(options.time_limit_s, steady_s()),
      crew_(io_, options, inside,
            {[this](const Frame& frame) { hear(0, frame); }, [this](i64) { leave_when_done(); },
             [this](const std::string& reason, bool again) {
               stop(reason, "agent_stopping", again || reason != "signal");
             }}),
      timer_(io_),
      inotify_(io_) {
  spread_lent_.write = [this](std::string_view kind, nlohmann::json body) {
    mailbox_.send(kind, std::move(body));
  };
  spread_lent_.send = [this](i64 node, Frame frame) { tell(node, std::move(frame)); };
  spread_lent_.clock_offset_ns = [this](i64 node) { return hub_ ? hub_->clock_offset_ns(node) : 0; };
  spread_lent_.name = [this](i64 node) { return name_of(node); };
}

int Agent::run() {
  began_s_ = contact_s_ = busy_s_ = steady_s();
  records_[0] = probe_node(crew_.nvml());
  hosts_[0] = records_[0].host;
  crew_.begin();
  auto opened = options_.nodes > 1 ? open_hub() : Expected<void>();
  if (opened) say_ready();
  if (opened && options_.peers == "slurm") opened = start_peers();
  if (!opened) {
    spdlog::error("{}", opened.error().message);
    tell_launcher(options_.ready_fd, {{"error", opened.error().message}});
    return 1;
  }
  arm();
  check_joined();
  io_.run();
  return tainted_ ? 3 : 0;
}

void Agent::serve() {
  serving_ = true;
  hello();
  watch_inbox();
  read_inbox();
}

void Agent::hello() {
  const NodeRecord& node = records_[0];
  mailbox_.send(spool::kHello, {{"pid", outside_pid(inside_, ::getpid())},
                                {"host", node.host},
                                {"version", kVersion},
                                {"nodes", placement_.usable_count()},
                                {"pid_namespace", inside_.pid_namespace}});
  mailbox_.send(spool::kNode, to_json(node));
}

void Agent::watch_inbox() {
  if (!inotify_.is_open()) {
    const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) return;  // the poll serves
    ::inotify_add_watch(fd, options_.spool.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
    inotify_.assign(fd);
  }
  inotify_.async_read_some(boost::asio::buffer(events_),
                           [this](const boost::system::error_code& error, std::size_t) {
                             if (error) return;
                             read_inbox();
                             watch_inbox();
                           });
}

void Agent::arm() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void Agent::tick() {
  beat(inside_);
  if (mailbox_.backlog()) {
    mailbox_.flush();
    start_next();
  }
  if (!serving_)
    check_joined();
  else
    read_inbox();
  crew_.reap();
  watch_contact();
  watch_idleness();
  watch_time();
  watch_mailbox();
  for (auto dead = dead_at_s_.begin(); dead != dead_at_s_.end();) {
    const i64 node = dead->first;
    dead = dead->second <= steady_s() ? dead_at_s_.erase(dead) : std::next(dead);
    if (!dead_at_s_.contains(node))
      for (auto run = running_.begin(); run != running_.end();) (run++)->second->part_is_dead(node);
  }
  leave_when_done();
  if (!left_) arm();
}

// A bridge touches a file while an orchestrator is at its other end. Whoever relies on that gives a limit: after
// it nobody counts on this allocation any more.
void Agent::watch_contact() {
  if (options_.contact_limit_s <= 0 || !leaving_.empty()) return;
  std::error_code ec;
  const auto touched = std::filesystem::last_write_time(spool::contact(options_.spool), ec);
  if (!ec && touched != contact_file_) {
    contact_file_ = touched;
    contact_s_ = steady_s();
  }
  if (steady_s() - contact_s_ > options_.contact_limit_s) {
    spdlog::warn("nothing was heard of the orchestrator for {} s", options_.contact_limit_s);
    stop("orchestrator silent", "agent_stopping", false);
  }
}

// Its orchestrator may have died for good: nodes are not held for nobody.
void Agent::watch_idleness() {
  if (options_.idle_limit_s <= 0 || !leaving_.empty()) return;
  if (!serving_ || !running_.empty() || !placement_.empty()) busy_s_ = steady_s();
  if (steady_s() - busy_s_ <= options_.idle_limit_s) return;
  leaving_ = "idle";
}

// What runs ends a little before its scheduler would end it, so that its ranks' records are written.
void Agent::watch_time() {
  if (leaving_.empty() && time_.over(steady_s())) stop("time limit", "agent_stopping", false);
}

// What cannot end before the allocation does is not started here: it stays pending, and another allocation runs it.
void Agent::give_back_late() {
  while (const Attempt* next = placement_.next()) {
    const double now = steady_s();
    if (time_.allows(*next, now)) return;
    const i64 id = next->id;
    never_started(id, "no_time",
                  fmt::format("not started: it would take about {:.3g} s, and the allocation ends before",
                              time_.estimate(*next)));
    placement_.remove(id);
  }
}

// Whoever removed the folder took away what was asked and what is answered: nobody waits for these ranks.
void Agent::watch_mailbox() {
  ticks_unread_ = mailbox_.gone() ? ticks_unread_ + 1 : 0;
  if (ticks_unread_ != kTicksGone) return;
  spdlog::error("{} is gone or was cut: somebody changed the folder while it was in use",
                spool::outbox(options_.spool).string());
  stop("mailbox gone", "agent_stopping", true);
}

void Agent::read_inbox() {
  for (const auto& line : mailbox_.poll()) {
    busy_s_ = steady_s();
    obey(line);
  }
  start_next();
  leave_when_done();
}

void Agent::obey(const spool::Line& line) {
  if (line.kind == spool::kAttempt) return enqueue(line);
  if (line.kind == spool::kCancel && line.body.is_object() && line.body.contains("attempt") &&
      line.body["attempt"].is_number_integer())
    return cancel(line.body["attempt"].get<i64>(), "cancelled");
  if (line.kind == spool::kFinish && line.body.is_object()) return finish(flag_of(line.body, "now"));
  spdlog::warn("inbox line {} is not understood (kind {})", line.seq, line.kind);
}

void Agent::enqueue(const spool::Line& line) {
  auto attempt = from_json<Attempt>(line.body);
  const i64 world = attempt ? attempt->trial.world() : 0;
  if (!attempt || world < 1 || world > kMaxRanks || attempt->id < 1) {
    spdlog::error("inbox line {} is no attempt that can be run: {}", line.seq,
                  attempt ? "its id or its number of ranks" : attempt.error().message);
    return;
  }
  if (!leaving_.empty()) return give_back(attempt->id, "cancelled");
  if (const auto why = unplaceable(*attempt, options_.nodes); !why.empty())
    return never_started(attempt->id, "start_failed", why);
  placement_.push(std::move(*attempt));
}

void Agent::never_started(i64 attempt, const std::string& cause, const std::string& why) {
  AttemptEnd end;
  end.attempt = attempt;
  end.cause = end_cause_from(cause).value_or(EndCause::kStartFailed);
  end.evidence = dump({{"why", why}});
  end.started_unix_ns = end.ended_unix_ns = unix_ns_now();
  mailbox_.send(spool::kAttemptEnd, to_json(end));
}

void Agent::give_back(i64 attempt, const std::string& cause) {
  never_started(
      attempt, cause,
      leaving_.empty() ? "cancelled before it was started" : "not started: its agent is ending: " + leaving_);
}

void Agent::cancel(i64 id, const std::string& cause) {
  if (const auto run = running_.find(id); run != running_.end()) return run->second->end(cause, false);
  if (placement_.remove(id)) give_back(id, cause);  // else unknown, or ended already
}

void Agent::drop_queue(const std::string& cause) {
  while (const auto id = placement_.first()) cancel(*id, cause);
}

void Agent::finish(bool now) {
  if (now) return stop("cancelled", "cancelled", false);
  finishing_ = true;
}

void Agent::stop(const std::string& reason, const std::string& cause, bool at_once) {
  if (leaving_.empty()) leaving_ = reason;
  skip_fsync_ = skip_fsync_ || at_once;
  drop_queue(cause);
  for (auto run = running_.begin(); run != running_.end();) (run++)->second->end(cause, at_once);
  boost::asio::post(io_, [this] { leave_when_done(); });
}

// REQUIRES: nothing; safe to call at any time.
void Agent::start_next() {
  if (!serving_ || mailbox_.backlog() || !leaving_.empty())
    return;  // a full disk must not pile up more to write
  give_back_late();
  while (auto placed = placement_.take()) {
    const i64 id = placed->attempt.id;
    if (running_.count(id) > 0) {  // posted twice
      placement_.release(*placed);
      continue;
    }
    auto& run = running_[id];
    run = std::make_unique<DistributedAttempt>(spread_lent_, std::move(*placed),
                                               [this](DistributedAttempt& done) { finished(done); });
    for (auto& [other, beside] : running_)
      if (other != id) run->meet(*beside);
    started_s_[id] = steady_s();
    run->start();
    give_back_late();
  }
  leave_if_stuck();
}

// Too many nodes get no more work: what runs goes on, what waits may run elsewhere.
void Agent::leave_if_stuck() {
  if (!leaving_.empty() || !placement_.stuck()) return;
  leaving_ = tainted_ ? "tainted" : "nodes lost" + absent_;
  drop_queue("agent_stopping");
}

void Agent::hear(i64 node, const Frame& frame) {
  const auto body = frame.head.find("body");
  if (body == frame.head.end() || !body->is_object() || !body->contains("attempt")) return;
  const auto& id = (*body)["attempt"];
  if (!id.is_number_integer()) return;
  if (const auto run = running_.find(id.get<i64>()); run != running_.end()) run->second->hear(node, frame);
}

void Agent::finished(DistributedAttempt& spread) {
  for (const i64 node : spread.unclean_nodes()) {
    tainted_ = true;
    placement_.give_up(node);
  }
  placement_.release(spread.placed());
  const auto started = started_s_.extract(spread.id());
  if (started && spread.ended_by_itself())
    time_.ended(spread.placed().attempt, steady_s() - started.mapped());
  leave_if_stuck();
  boost::asio::post(io_, [this, id = spread.id()] {
    running_.erase(id);
    start_next();
    leave_when_done();
  });
}

// A job whose srun is ended before its step keeps its other nodes for seconds: their ends find nobody to be told to.
bool Agent::others_are_gone() const {
  return !hub_->any_connected() && (options_.peers != "slurm" || srun_ended_);
}

void Agent::leave_when_done() {
  if (leaving_.empty() && finishing_ && placement_.empty()) leaving_ = "finished";
  if (leaving_.empty() || !running_.empty() || !crew_.idle() || left_) return;
  if (!bye_sent_) mailbox_.send(spool::kBye, {{"reason", leaving_}});
  bye_sent_ = true;
  if (mailbox_.backlog() && !skip_fsync_ && ++ticks_unwritten_ < kTicksForDisk) return;
  left_ = true;
  crew_.leave();
  if (!hub_) return io_.stop();
  for (i64 node = 1; node < options_.nodes; ++node)
    hub_->send(node, {{{"kind", kLeave}, {"body", nlohmann::json::object()}}, {}});
  if (others_are_gone()) return io_.stop();
  timer_.expires_after(options_.peers == "slurm" ? kForStepToEnd
                                                 : kForNodesToLeave);  // else the last one stops it
  timer_.async_wait([this](const boost::system::error_code&) { io_.stop(); });
}

}  // namespace sweep::agent
