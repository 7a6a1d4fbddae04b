// BatchLauncher: the launcher over any Scheduler: every allocation is a BatchJob. One query about all of
// them, at a rate that decays while nothing changes; a query that fails concludes nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/launch_config.h"
#include "orchestrator/launch/launcher.h"

namespace sweep::launch {

// longest_pause_s: between two queries, while nothing changes.
std::unique_ptr<Launcher> make_batch(boost::asio::io_context&, std::unique_ptr<Scheduler>,
                                     double longest_pause_s, Launcher::Sink);

// The blocking queries to the scheduler.
struct BatchQuestions {
  std::string_view scheduler;  // name for people
  std::string_view record;     // name in allocation records
  // Jobs of these names that have not ended. Error: the scheduler does not answer.
  std::function<Expected<std::vector<JobStatus>>(const std::vector<std::string>& names)> living;
  std::function<Expected<void>(i64 number)> cancel;
  // Whether an existing job, whose step an allocation was, has ended or is no longer known.
  std::function<Expected<bool>(i64 number)> is_over;
};

// Leftovers of ended runs in a batch system: jobs of allocations that still wait or run.
Expected<std::unique_ptr<Leftovers>> batch_leftovers(BatchQuestions, std::span<const AllocationPlace>);

}  // namespace sweep::launch
