#include "worker/command/early_end.h"

namespace sweep::command {

EarlyEnd::EarlyEnd(const Attempt& attempt, const RankLaunch& launch, bool stop_after_steps)
    : stop_(attempt.stop_above_ms),
      warmup_(attempt.measure.warmup_steps),
      all_(attempt.measure.warmup_steps + attempt.measure.steps),
      decides_(launch.rank == 0),
      after_steps_(stop_after_steps),
      told_(launch, "stop_early") {}

bool EarlyEnd::is_clearly_slow(const std::vector<TrainerStep>& steps) {
  for (; judged_ < steps.size(); ++judged_)
    if (steps[judged_].ms && steps[judged_].number > warmup_)
      stop_.add(static_cast<i64>(*steps[judged_].ms * 1e6));
  return stop_.is_clear();
}

bool EarlyEnd::is_due(const std::vector<TrainerStep>& steps, bool at_once) {
  if (due_ || (!stop_.in_force() && !after_steps_)) return due_;
  const bool enough = after_steps_ && !steps.empty() && steps.back().number > all_;
  const bool slow = decides_ && stop_.in_force() && is_clearly_slow(steps);
  due_ = enough || slow ? told_.tell() : told_.is_told(at_once);
  // A trainer with all of its steps is ended though no other rank can be told.
  return due_ = due_ || enough;
}

}  // namespace sweep::command
