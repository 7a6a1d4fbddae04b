// EarlyEnd: whether the program of a command is ended before it ends by itself: rank 0's steps show that the trial is
// clearly slower than the best one (runtime/early_stop.h), or with stop_after_steps some rank has all of the trial's
// steps, and one more. Every rank is told: ranks that report nothing end too, and no trainer is ended before every
// rank had time to learn of it (settle_s). A trainer whose peers are gone fails, and that would look like a crash.
#pragma once
#include <vector>

#include "runtime/early_stop.h"
#include "schema/attempt.h"
#include "schema/rank_launch.h"
#include "worker/command/announcement.h"
#include "worker/command/trainer_report.h"

namespace sweep::command {

class EarlyEnd {
 public:
  // launch: with the rank's place on its node (local_rank).
  EarlyEnd(const Attempt&, const RankLaunch&, bool stop_after_steps);

  // Is called every 100 ms or so, with this rank's steps so far. Once true it stays so. at_once: the trainer
  // has ended, so the others are asked now or never.
  bool is_due(const std::vector<TrainerStep>&, bool at_once = false);
  // Seconds from the moment it is due until the trainer may be ended.
  double settle_s() const { return told_.settle_s(); }

 private:
  bool is_clearly_slow(const std::vector<TrainerStep>&);

  EarlyStop stop_;
  i64 warmup_, all_;
  bool decides_, after_steps_, due_ = false;
  Announcement told_;
  std::size_t judged_ = 0;
};

}  // namespace sweep::command
