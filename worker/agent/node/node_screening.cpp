#include "worker/agent/node/node_screening.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>

#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::agent {

NodeScreening::NodeScreening(boost::asio::io_context& io, const Options& options, AllocationNodes& nodes,
                             Dispatcher& dispatcher, RecordSink& outbox)
    : io_(io), options_(options), nodes_(nodes), dispatcher_(dispatcher), outbox_(outbox) {}

void NodeScreening::start(std::function<void()> done) {
  const Nvml* nvml = nodes_.runner().nvml();
  const Placement& placement = dispatcher_.placement();
  auto placed = placement.over_all(
      screen_attempt(placement.usable_count(), nvml == nullptr ? 0 : nvml->count(), options_.zygote));
  screened_ = placed.nodes;
  dispatcher_.running().start(std::make_unique<DistributedAttempt>(
      nodes_, *this, std::move(placed), [this, done = std::move(done)](DistributedAttempt& ended) {
        for (const i64 node : ended.unclean_nodes()) dispatcher_.placement().give_up(node);
        boost::asio::post(io_, [this, done] {
          dispatcher_.running().erase(kScreenAttempt);
          done();
        });
      }));
}

void NodeScreening::send(std::string_view kind, nlohmann::json body) {
  if (kind != spool::kRankRecord) return;
  if (auto record = from_json<RankRecord>(body)) by_rank_[record->rank] = std::move(*record);
}

void NodeScreening::judge() {
  auto records = nodes_.records();
  std::map<i64, NodeFacts> facts;
  for (const auto& [node, record] : records) facts[node] = record.facts;
  const auto screens = judge_screen(by_rank_, screened_, facts);
  if (screens.empty())
    spdlog::warn("screening the nodes gave no result; attempts/{} holds its logs", kScreenAttempt);
  for (const auto& [node, screen] : screens) {
    records[node].facts.screen = screen;
    if (node != 0) outbox_.send(spool::kNode, sweep::to_json(records[node]));
    nodes_.set_facts(node, records[node].facts);  // this node's record follows the hello
    if (!screen.slow.empty()) report_slow(node, screen);
  }
}

void NodeScreening::report_slow(i64 node, const NodeScreen& screen) {
  const bool out = options_.screen == Screen::kLeaveOut;
  spdlog::warn("{} stands out: {}{}", nodes_.name(node), screen.slow, out ? "; it gets no work" : "");
  if (out) dispatcher_.placement().give_up(node);
}

}  // namespace sweep::agent
