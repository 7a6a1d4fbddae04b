// NodeScreening: measures the nodes before the first trial, by one attempt of the agent's own over all of
// them, and shows or leaves out those that stand out (Options::screen).
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <vector>

#include "worker/agent/node/allocation_nodes.h"
#include "worker/agent/node/dispatcher.h"
#include "worker/agent/node/screening.h"

namespace sweep::agent {

class NodeScreening final : public RecordSink {
 public:
  NodeScreening(boost::asio::io_context& io, const Options& options, AllocationNodes& nodes,
                Dispatcher& dispatcher, RecordSink& outbox);

  // `done` is called once, after the ranks have ended, however they did.
  void start(std::function<void()> done);
  // Sends the node records with what was measured, and acts on nodes that stand out.
  void judge();

 private:
  // The attempt is not the orchestrator's: none of its lines goes to the outbox.
  void send(std::string_view kind, nlohmann::json body) override;
  void report_slow(i64 node, const NodeScreen& screen);

  boost::asio::io_context& io_;
  const Options& options_;
  AllocationNodes& nodes_;
  Dispatcher& dispatcher_;
  RecordSink& outbox_;
  std::vector<i64> screened_;
  std::map<i64, RankRecord> by_rank_;
};

}  // namespace sweep::agent
