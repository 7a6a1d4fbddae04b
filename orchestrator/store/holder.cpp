#include "orchestrator/store/holder.h"

namespace sweep::store {

Beat beat_of(double silent_s) {
  if (silent_s > kLeaseSilenceSeconds) return Beat::kSilent;
  return silent_s > kQuietSeconds ? Beat::kQuiet : Beat::kRecent;
}

Standing standing_of(Process process, JobWord job, Beat beat, bool watched) {
  if (process == Process::kAlive) return Standing::kHeld;
  if (process == Process::kGone) return Standing::kFree;
  const bool over = process == Process::kRebooted || job == JobWord::kOver;
  const bool lost = job == JobWord::kLost && beat == Beat::kSilent;
  if (watched && beat != Beat::kRecent && (over || lost)) return Standing::kFree;
  return beat == Beat::kSilent ? Standing::kUncertain : Standing::kHeld;
}

}  // namespace sweep::store
