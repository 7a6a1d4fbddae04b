#include "worker/agent/node/running_attempts.h"

#include "base/time.h"

namespace sweep::agent {

void RunningAttempts::start(std::unique_ptr<DistributedAttempt> attempt) {
  DistributedAttempt& starting = *attempt;
  for (auto& [other, running] : running_) starting.meet(*running.attempt);
  running_[starting.id()] = {std::move(attempt), steady_s()};
  starting.start();
}

void RunningAttempts::said(i64 node, const AgentMessage& message) {
  if (const auto run = running_.find(attempt_of(message)); run != running_.end())
    run->second.attempt->receive(node, message);
}

void RunningAttempts::node_lost(i64 node, const std::string& why) {
  for (auto& [id, running] : running_) running.attempt->node_lost(node, why);
}

void RunningAttempts::node_dead(i64 node) {
  for (auto& [id, running] : running_) running.attempt->part_is_dead(node);
}

void RunningAttempts::end_all(EndCause cause, bool at_once) {
  for (auto& [id, running] : running_) running.attempt->end(cause, at_once);
}

}  // namespace sweep::agent
