// BatchLauncher: the launcher over any Scheduler: every allocation is a BatchJob. One query about all of
// them, at a rate that decays while nothing changes; a query that fails concludes nothing.
#pragma once
#include <memory>

#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/launcher.h"

namespace sweep::launch {

// longest_pause_s: between two queries, while nothing changes.
std::unique_ptr<Launcher> make_batch(boost::asio::io_context&, std::unique_ptr<Scheduler>,
                                     double longest_pause_s, Launcher::Sink);

}  // namespace sweep::launch
