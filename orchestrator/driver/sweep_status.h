// The status of a sweep: its counts and details from the database, with what only a run knows of them: the time that its
// strategy leaves, the limits of the site, who runs it. `status`, `serve` and the live board show it.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "orchestrator/answers/progress.h"
#include "orchestrator/run/observer.h"

namespace sweep::driver {

answers::Progress progress_of(const store::SweepRow&, const run::Snapshot&);
// A sweep as it is now, with the time that its strategy leaves.
Expected<run::Snapshot> snapshot_of(store::Store&, const store::SweepRow&);
// The document of `status --json` and of the live page, with so many of the newest events.
Expected<nlohmann::json> status_document(store::Store&, const store::SweepRow&, const run::Snapshot&,
                                         i64 events);
// Adds to a picture who runs the sweep, and its details. `shown`: the axes that vary.
Expected<void> add_details(answers::StatusView&, store::Store&, const store::SweepRow&,
                           std::span<const answers::Field> shown);
// Adds the Slurm job in which the sweep waits for its orchestrator, where nobody runs it.
void add_waiting_job(answers::StatusView&, store::Store&, const store::SweepRow&,
                     const std::filesystem::path& db);

}  // namespace sweep::driver
