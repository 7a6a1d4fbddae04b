// EarlyEnd: whether an attempt of a command ends before its last step (runtime/early_stop.h). Rank 0 judges its
// own steps. It tells the other ranks by the attempt's rendezvous store where they are on several nodes; the
// first rank of each node tells the others there by a file. No trainer is ended before every rank had time to
// learn of it (settle_s): a trainer whose peers are gone fails, and that would look like a crash.
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "runtime/early_stop.h"
#include "runtime/store_client.h"
#include "schema/attempt.h"
#include "schema/rank_launch.h"
#include "worker/command/trainer_report.h"

namespace sweep::command {

class EarlyEnd {
 public:
  // launch: with the rank's place on its node (local_rank).
  EarlyEnd(const Attempt&, const RankLaunch&);

  // To be called every 100 ms or so, with this rank's steps so far. Once true it stays so. at_once: the trainer
  // has ended, so the store is asked now or never.
  bool is_due(const std::vector<TrainerStep>&, bool at_once = false);
  // From the moment it is due until the trainer may be ended, in seconds.
  double settle_s() const;

 private:
  bool judge(const std::vector<TrainerStep>&);
  bool announced(bool at_once);
  bool ask_store(bool at_once);

  EarlyStop stop_;
  i64 warmup_;
  bool decides_, several_nodes_, due_ = false;
  std::filesystem::path file_;
  std::optional<StoreClient> store_;  // of the first rank of each node, where there are several
  double asked_s_ = 0;
  std::size_t judged_ = 0;
};

}  // namespace sweep::command
