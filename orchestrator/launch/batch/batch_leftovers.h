// Leftovers of ended runs in a batch system: jobs of allocations that still wait or run.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/launch_config.h"

namespace sweep::launch {

// The blocking queries to the scheduler.
struct BatchQuestions {
  std::string_view scheduler;  // name for people
  std::string_view record;     // name in allocation records
  // Jobs of these names that have not ended. Error: the scheduler does not answer.
  std::function<Expected<std::vector<JobStatus>>(const std::vector<std::string>& names)> living;
  std::function<Expected<void>(i64 number)> cancel;
  // Whether an existing job, whose step an allocation was, has ended or is no longer known.
  std::function<Expected<bool>(i64 number)> is_over;
  std::function<std::string(const AllocationId&)> job_name;
};

Expected<std::unique_ptr<Leftovers>> batch_leftovers(BatchQuestions, std::span<const AllocationPlace>);

}  // namespace sweep::launch
