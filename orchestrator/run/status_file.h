// status.json: the snapshot for watchers that cannot open the database (another host of a network
// filesystem).
#pragma once
#include <filesystem>

#include "orchestrator/run/run_sweep.h"

namespace sweep::run {

// Replaced atomically; a failure is not worth ending a run for and is dropped.
void write_status_file(const std::filesystem::path&, const Snapshot&);

}  // namespace sweep::run
