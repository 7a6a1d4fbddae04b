// The head agent's look at the nodes before it serves: one attempt of its own over all of them.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>

#include "schema/codec.h"
#include "worker/agent/node/agent.h"

namespace sweep::agent {

void Agent::screen_nodes() {
  screening_ = true;
  const i64 gpus = crew_.nvml() == nullptr ? 0 : crew_.nvml()->count();
  auto placed = placement_.over_all(screen_attempt(placement_.usable_count(), gpus, options_.zygote));
  screen_lent_ = std::make_unique<DistributedContext>(spread_lent_);
  screen_lent_->write = [this](std::string_view kind,
                               const nlohmann::json& body) {  // none of it is the outbox's
    if (kind != spool::kRankRecord) return;
    if (auto record = from_json<RankRecord>(body)) screen_said_[record->rank] = std::move(*record);
  };
  auto& run = running_[kScreenAttempt];
  run = std::make_unique<DistributedAttempt>(
      *screen_lent_, std::move(placed), [this](DistributedAttempt& done) {
        for (const i64 node : done.unclean_nodes()) placement_.give_up(node);
        boost::asio::post(io_, [this, nodes = done.placed().nodes] { screened(nodes); });
      });
  run->start();
}

void Agent::screened(const std::vector<i64>& nodes) {
  running_.erase(kScreenAttempt);
  screening_ = false;
  if (!leaving_.empty()) return leave_when_done();
  std::map<i64, nlohmann::json> facts;
  for (const auto& [node, record] : records_)
    facts[node] = parse_json(record.facts).value_or(nlohmann::json::object());
  const auto screens = judge_screen(screen_said_, nodes, facts);
  if (screens.empty())
    spdlog::warn("the look at the nodes gave no answer; attempts/{} holds its logs", kScreenAttempt);
  for (const auto& [node, screen] : screens) {
    facts[node]["screen"] = to_json(screen);
    records_[node].facts = dump(facts[node]);
    if (node != 0) mailbox_.send(spool::kNode, sweep::to_json(records_[node]));  // hello() sends the head's
    if (!screen.slow.empty()) take_out(node, screen);
  }
  serve();
}

void Agent::take_out(i64 node, const NodeScreen& screen) {
  const bool out = options_.screen == "leave_out";
  spdlog::warn("{} stands out: {}{}", name_of(node), screen.slow, out ? "; it gets no work" : "");
  if (out) placement_.give_up(node);
}

}  // namespace sweep::agent
