// Holder: who runs a sweep, asked after where it is not heard: Slurm about its job, the clock about its heartbeats; and the
// sentences about it that all commands share.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/store/store.h"

namespace sweep::cli {

using Holder = std::optional<store::LeaseHolder>;

// The holder, unless it is known to be gone. Slurm is asked about one that is not heard; patient: and it is looked at for
// store::kQuietSeconds.
Expected<Holder> holder_of(store::Store&, i64 sweep, bool patient = false);

// Takes the lease, as Store::take_lease. A holder that is not heard is asked after and looked at until it is known to
// live, known to be gone, or in doubt; then the answer is uncertain and has been told with what to type.
Expected<Holder> obtain_lease(Io&, store::Store&, const store::SweepRow&, const SweepSelector&,
                              bool take_over);
inline bool uncertain(const Holder& holder) {
  return holder && holder->standing == store::LeaseStatus::kUncertain;
}

// "process 631 on n3 (Slurm job 12)"
std::string holder_name(const store::LeaseHolder&);
bool is_heard(const store::LeaseHolder&);
// "run by process 631 on n3, last heartbeat 2 s ago", or since when nothing was heard of it.
std::string standing_text(const store::LeaseHolder&);
// What to type where a person knows that it is gone.
std::string take_over_text(const std::string& sweep, const std::string& db);

}  // namespace sweep::cli
