// RunningAttempts: the attempts that an allocation runs, by id, with when each was started.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "worker/agent/node/distributed_attempt.h"

namespace sweep::agent {

class RunningAttempts {
 public:
  // REQUIRES: none of this id runs.
  void start(std::unique_ptr<DistributedAttempt> attempt);
  // Not from the attempt's own callback.
  void erase(i64 id) { running_.erase(id); }
  bool contains(i64 id) const { return running_.contains(id); }
  bool empty() const { return running_.empty(); }
  // Steady clock. REQUIRES: contains(id).
  double started_s(i64 id) const { return running_.at(id).started_s; }

  // A message about an unknown attempt is dropped.
  void said(i64 node, const AgentMessage& message);
  void node_lost(i64 node, const std::string& why);
  void node_dead(i64 node);
  void end_all(EndCause cause, bool at_once);

 private:
  struct Running {
    std::unique_ptr<DistributedAttempt> attempt;
    double started_s = 0;
  };
  std::map<i64, Running> running_;
};

}  // namespace sweep::agent
