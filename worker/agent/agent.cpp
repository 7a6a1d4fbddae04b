// The event loop: inbox, children, signals, orchestrator.
#include "worker/agent/agent.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include "schema/attempt_token.h"
#include "schema/codec.h"
#include "schema/version.h"
#include "worker/agent/clock.h"
#include "worker/agent/node_probe.h"

namespace sweep::agent {

namespace {
constexpr auto kTick =
    std::chrono::milliseconds(50);  // inbox poll where inotify says nothing (network filesystems)
constexpr int kTicksForDisk = 100;  // how long a leaving agent waits for a full disk: 5 s
constexpr i64 kMaxRanks = 4096;     // of one attempt on one node: anything above is damage

Lent lend(boost::asio::io_context& io, const Options& options, const Inside& inside, Zygote& zygote,
          NodeWatch& node) {
  const std::string key = allocation_key(options.allocation, options.spool);
  return Lent{io, options, inside, zygote, node, key, rendezvous_root(key, options.incarnation),
              {}, {},      {},     {}};
}
}  // namespace

Agent::Agent(const Options& options, const Inside& inside, Mailbox mailbox)
    : options_(options),
      inside_(inside),
      mailbox_(std::move(mailbox)),
      queue_(options.slots),
      node_(Nvml::load()),
      zygote_(io_, options.rank_program, attempt_token(allocation_key(options.allocation, options.spool), 0)),
      lent_(lend(io_, options, inside, zygote_, node_)),
      signals_(io_),
      timer_(io_),
      parent_(io_),
      inotify_(io_) {
  lent_.send = [this](std::string_view kind, nlohmann::json body) { mailbox_.send(kind, std::move(body)); };
  lent_.alone = [this] { return running_.size() <= 1; };
  lent_.reap = [this] { reap(); };
  lent_.claim = [this](pid_t pid) -> std::optional<int> {
    const auto found = unclaimed_.find(pid);
    if (found == unclaimed_.end()) return std::nullopt;
    const int status = found->second;
    unclaimed_.erase(found);
    return status;
  };
}

Agent::~Agent() {
  std::error_code ec;
  running_.clear();
  std::filesystem::remove_all(lent_.rendezvous_root, ec);
}

int Agent::run() {
  watch_signals();
  watch_parent();
  watch_inbox();
  if (options_.zygote) zygote_.usable();  // warm before the first attempt
  hello();
  arm();
  read_inbox();
  io_.run();
  return tainted_ ? 3 : 0;
}

void Agent::hello() {
  const NodeRecord node = probe_node(node_.nvml());
  mailbox_.send(spool::kHello, {{"pid", outside_pid(inside_, ::getpid())},
                                {"host", node.host},
                                {"version", kVersion},
                                {"pid_namespace", inside_.pid_namespace}});
  mailbox_.send(spool::kNode, to_json(node));
}

void Agent::watch_signals() {
  if (!signals_armed_) {
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) signals_.add(signal);
    sigset_t ours;  // blocked since before the fork; the handlers stand now
    sigemptyset(&ours);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&ours, signal);
    ::sigprocmask(SIG_UNBLOCK, &ours, nullptr);
    signals_armed_ = true;
  }
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (signal == SIGCHLD)
      reap();
    else
      stop("signal", "agent_stopping", !leaving_.empty());  // the second one: at once
    watch_signals();
  });
}

void Agent::watch_parent() {
  if (inside_.parent_pidfd < 0) return;
  parent_.assign(inside_.parent_pidfd);
  parent_.async_wait(parent_.wait_read, [this](const boost::system::error_code& error) {
    if (!error) stop("orchestrator gone", "agent_stopping", true);
  });
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
  if (mailbox_.backlog()) {
    mailbox_.flush();
    start_next();
  }
  read_inbox();
  reap();
  leave_when_idle();
  leave_when_done();
  if (!io_.stopped()) arm();
}

void Agent::read_inbox() {
  for (const auto& line : mailbox_.poll()) {
    busy_ = std::chrono::steady_clock::now();
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
  if (line.kind == spool::kFinish && line.body.is_object())
    return finish(line.body.contains("now") && line.body["now"].is_boolean() && line.body["now"].get<bool>());
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
  queue_.push(std::move(*attempt));
  if (!leaving_.empty()) drop_queue("cancelled");
}

void Agent::cancel(i64 id, const std::string& cause) {
  if (const auto run = running_.find(id); run != running_.end()) return run->second->end(cause, false);
  if (!queue_.remove(id)) return;  // unknown, or ended already
  AttemptEnd end;
  end.attempt = id;
  end.cause = cause;
  end.started_unix_ns = end.ended_unix_ns = unix_ns();
  mailbox_.send(spool::kAttemptEnd, to_json(end));
}

void Agent::drop_queue(const std::string& cause) {
  while (const auto id = queue_.first()) cancel(*id, cause);
}

void Agent::finish(bool now) {
  if (now) return stop("cancelled", "cancelled", false);
  finishing_ = true;
}

void Agent::stop(const std::string& reason, const std::string& cause, bool at_once) {
  if (leaving_.empty()) leaving_ = reason;
  hurry_ = hurry_ || at_once;
  drop_queue(cause);
  for (auto run = running_.begin(); run != running_.end();) (run++)->second->end(cause, at_once);
  boost::asio::post(io_, [this] { leave_when_done(); });
}

// REQUIRES: nothing; safe to call at any time.
void Agent::start_next() {
  if (mailbox_.backlog() || !leaving_.empty()) return;  // a full disk must not pile up more to write
  while (auto attempt = queue_.take()) {
    const i64 id = attempt->id;
    if (running_.count(id) > 0) {  // posted twice
      queue_.release(*attempt);
      continue;
    }
    auto& run = running_[id];
    run = std::make_unique<AttemptRun>(lent_, std::move(*attempt),
                                       [this](AttemptRun& done) { finished(done); });
    run->start();
  }
}

void Agent::finished(AttemptRun& run) {
  queue_.release(run.attempt());
  if (!run.clean()) {
    tainted_ = true;
    if (leaving_.empty()) leaving_ = "tainted";  // this node gets no more work; what waits stays unanswered
  }
  boost::asio::post(io_, [this, id = run.attempt().id] {
    running_.erase(id);
    start_next();
    leave_when_done();
  });
}

void Agent::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (zygote_.exited(pid)) continue;
    bool known = false, starting = false;
    for (auto& [id, run] : running_) {
      starting = starting || run->starting();
      if ((known = run->exited(pid, status))) break;
    }
    if (!known && starting) unclaimed_[pid] = status;
    if (!starting) unclaimed_.clear();
  }
}

// Its orchestrator may have died for good: nodes are not held for nobody.
void Agent::leave_when_idle() {
  const auto now = std::chrono::steady_clock::now();
  if (!running_.empty() || !queue_.empty()) busy_ = now;
  if (options_.idle_limit_s <= 0 || !leaving_.empty()) return;
  if (std::chrono::duration<double>(now - busy_).count() > options_.idle_limit_s)
    stop("idle", "cancelled", false);
}

void Agent::leave_when_done() {
  if (leaving_.empty() && finishing_ && queue_.empty()) leaving_ = "finished";
  if (leaving_.empty() || !running_.empty() || left_) return;
  if (!bye_sent_) mailbox_.send(spool::kBye, {{"reason", leaving_}});
  bye_sent_ = true;
  if (mailbox_.backlog() && !hurry_ && ++ticks_unwritten_ < kTicksForDisk) return;
  left_ = true;
  zygote_.stop();
  io_.stop();
}

}  // namespace sweep::agent
