#include "worker/agent/node/node_runner.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/time.h"
#include "schema/spool.h"

namespace sweep::agent {
NodeRunner::NodeRunner(boost::asio::io_context& io, const Options& options, const SandboxInfo& inside,
                       NodeRunnerListener& listener)
    : io_(io),
      options_(options),
      listener_(listener),
      node_(Nvml::load()),
      zygote_(io_, options.rank_program, attempt_token(options.key(), 0)),
      context_{.io = io,
               .options = options,
               .inside = inside,
               .zygote = zygote_,
               .node = node_,
               .host = *this,
               .key = options.key(),
               .rendezvous_root = rendezvous_root(options.key(), options.incarnation),
               .here = {}},
      rendezvous_(context_.rendezvous_root),
      signals_(io_, inside.parent_pidfd, *this) {}

std::optional<int> NodeRunner::claim(pid_t pid) {
  const auto found = unclaimed_.extract(pid);
  return found ? std::optional<int>(found.mapped()) : std::nullopt;
}

NodeRunner::~NodeRunner() {
  running_.clear();
  for (const auto& [pid, ended] : spared_) ::kill(pid, SIGKILL);
}

void NodeRunner::begin() {
  if (const i64 removed = remove_dead_rendezvous(rendezvous_.root().parent_path()); removed > 0)
    spdlog::info("removed {} folders in {} whose agents are dead", removed,
                 rendezvous_.root().parent_path().string());
  signals_.begin();
  if (options_.zygote) zygote_.usable();  // warm before the first attempt
}

void NodeRunner::obey(const AgentMessage& message) {
  if (const auto* part = std::get_if<NodePart>(&message)) return start(*part);
  const auto run = running_.find(attempt_of(message));
  if (run == running_.end()) return;  // ended meanwhile
  AttemptRun& attempt = *run->second;
  if (const auto* end = std::get_if<EndPart>(&message)) attempt.end(end->cause, end->at_once);
  if (const auto* peer = std::get_if<PeerEnded>(&message)) attempt.peer_ended(peer->cause);
  if (std::holds_alternative<AllStarted>(message)) attempt.peers_started();
  if (const auto* store = std::get_if<StoreMessage>(&message))
    attempt.store_answer(store->client, store->frame);
}

void NodeRunner::start(const NodePart& part) {
  if (running_.contains(part.attempt.id))
    return spdlog::error("attempt {} cannot be started: it runs already", part.attempt.id);
  auto& run = running_[part.attempt.id];
  run = std::make_unique<AttemptRun>(context_, part, [this](AttemptRun& done) {
    boost::asio::post(io_, [this, ended = done.attempt().id] {
      running_.erase(ended);
      listener_.attempt_finished(ended);
    });
  });
  run->start();
}

void NodeRunner::end_all(EndCause cause, bool at_once) {
  for (auto run = running_.begin(); run != running_.end();) (run++)->second->end(cause, at_once);
}

void NodeRunner::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (zygote_.exited(pid)) continue;
    if (const auto own = spared_.extract(pid)) {
      boost::asio::post(io_, own.mapped());
      continue;
    }
    // Ends are kept while any attempt starts, also where this one belongs to another attempt.
    const bool starting =
        std::ranges::any_of(running_, [](const auto& each) { return each.second->starting(); });
    const bool known =
        std::ranges::any_of(running_, [&](const auto& each) { return each.second->exited(pid, status); });
    if (!starting)
      unclaimed_.clear();
    else if (!known)
      unclaimed_[pid] = status;
  }
}

void NodeRunner::leave() {
  zygote_.stop();
}

}  // namespace sweep::agent
