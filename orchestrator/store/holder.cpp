#include "orchestrator/store/holder.h"

namespace sweep::store {

Beat beat_of(double silent_s) {
  if (silent_s > kLeaseSilenceSeconds) return Beat::kSilent;
  return silent_s > kQuietSeconds ? Beat::kQuiet : Beat::kRecent;
}

LeaseStatus lease_status_of(Process process, JobWord job, Beat beat, bool watched) {
  if (process == Process::kAlive) return LeaseStatus::kHeld;
  if (process == Process::kGone) return LeaseStatus::kFree;
  const bool over = process == Process::kRebooted || job == JobWord::kOver;
  const bool lost = (job == JobWord::kLost || process == Process::kOtherMachine) && beat == Beat::kSilent;
  if (watched && beat != Beat::kRecent && (over || lost)) return LeaseStatus::kFree;
  return beat == Beat::kSilent ? LeaseStatus::kUncertain : LeaseStatus::kHeld;
}

}  // namespace sweep::store
