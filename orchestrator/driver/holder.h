// Holder: who runs a sweep. Where no heartbeat comes from it, Slurm is asked about its job. The sentences
// about it are here too: all commands share them.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "orchestrator/run/run_sweep.h"
#include "orchestrator/store/store.h"

namespace sweep::driver {

using Holder = std::optional<store::LeaseHolder>;
// Shows people one line.
using Say = std::function<void(const std::string& line)>;

// Asks Slurm whether the job that a holder is part of still runs.
store::JobWord job_word_on(const store::LeaseHolder&);

// The holder, unless it is known to be gone. Slurm is asked about one that sends no heartbeat; patient: and
// such a one is watched for store::kQuietSeconds.
Expected<Holder> holder_of(store::Store&, i64 sweep, bool patient = false);

// Takes the lease, as Store::take_lease. A holder that sends no heartbeat is watched until it is known to
// live, known to be gone, or uncertain; `say` gets what was found and, uncertain, what to type.
Expected<Holder> obtain_lease(store::Store&, const store::SweepRow&, const std::filesystem::path& db,
                              bool take_over, const Say& say, const run::AskJob& ask = job_word_on);
// A person must decide.
inline bool uncertain(const Holder& holder) {
  return holder && holder->status == store::LeaseStatus::kUncertain;
}

// "process 631 on n3 (Slurm job 12)"
std::string holder_name(const store::LeaseHolder&);
bool is_responsive(const store::LeaseHolder&);
// "run by process 631 on n3, last heartbeat 2 s ago", or since when it has sent no heartbeat.
std::string holder_text(const store::LeaseHolder&);
// Who runs the sweep, by holder_text(); empty: nobody, as far as is known.
Expected<std::string> run_by(store::Store&, const store::SweepRow&);
// The command to type for a person who knows that it is gone.
std::string take_over_text(const std::string& sweep, const std::string& db);

}  // namespace sweep::driver
