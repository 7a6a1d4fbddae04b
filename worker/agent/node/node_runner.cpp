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

void NodeRunner::ask_store(i64 attempt, i64 client, Frame asked) {
  say(kStore, {{"attempt", attempt}, {"client", client}, {"message", std::move(asked.head)}},
      std::move(asked.blob));
}

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

void NodeRunner::say(std::string_view kind, nlohmann::json body, std::string blob) {
  listener_.runner_said({{{"kind", kind}, {"body", std::move(body)}}, std::move(blob)});
}

void NodeRunner::obey(const Frame& frame) {
  const auto kind = text_of(frame.head, "kind");
  const auto body = frame.head.find("body");
  if (body == frame.head.end() || !body->is_object()) return;
  if (kind == kStartPart) return start(*body);
  const auto run = running_.find(integer_of(*body, "attempt"));
  if (run == running_.end()) return;  // ended meanwhile
  if (kind == kEndPart) run->second->end(cause_in(*body), flag_of(*body, "at_once"));
  if (kind == kPeerEnded) run->second->peer_ended(cause_in(*body));
  if (kind == kAllStarted) run->second->peers_started();
  if (kind == kStore && body->contains("message") && (*body)["message"].is_object())
    run->second->store_answer(integer_of(*body, "client"), {(*body)["message"], frame.blob});
}

void NodeRunner::start(const nlohmann::json& body) {
  auto part = part_from(body);
  const i64 id = part ? part->attempt.id : 0;
  if (!part || running_.contains(id)) {
    spdlog::error("a part that cannot be started: {}", part ? "it runs already" : part.error().message);
    return;
  }
  auto& run = running_[id];
  run = std::make_unique<AttemptRun>(context_, std::move(*part), [this](AttemptRun& done) {
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
