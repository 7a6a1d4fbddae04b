#include "orchestrator/driver/leftovers.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>

#include "base/expected.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/orchestrator_job.h"
#include "runtime/attempt_token.h"
#include "schema/spool.h"

namespace sweep::driver {
namespace {

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The allocations of each launcher that is registered.
Expected<std::map<std::string, std::vector<launch::AllocationPlace>>> places_by_launcher(
    store::Store& store, i64 sweep, const std::vector<store::AllocationRow>& rows) {
  SWEEP_GET(const auto open, store.open_allocations(sweep));
  std::set<std::string> open_ids;
  for (const auto& row : open) open_ids.insert(row.id);
  std::map<std::string, std::vector<launch::AllocationPlace>> out;
  for (const auto& row : rows)
    if (find_launcher(row.launcher) != nullptr)
      out[row.launcher].push_back({row.id, row.spool, open_ids.contains(row.id)});
  return out;
}

}  // namespace

Expected<LeftoversOfRuns> LeftoversOfRuns::find(store::Store& store, const std::filesystem::path& db) {
  LeftoversOfRuns out;
  out.db_ = db;
  SWEEP_GET(const auto sweeps, store.sweeps());
  std::vector<std::string> names;
  for (const auto& sweep : sweeps) {
    SWEEP_GET(const auto holder, holder_of(store, sweep.id, true));
    if (holder) {
      out.running_.push_back({sweep.name, *holder});
    } else {
      SWEEP_TRY(out.add(store, sweep));
      names.push_back(sweep.name);
    }
  }
  SWEEP_GET(const auto jobs, living_orchestrator_jobs(db, names));
  for (auto& each : out.ended_)
    if (const auto job = jobs.find(each.sweep.name); job != jobs.end()) each.orchestrator_job = job->second;
  return out;
}

// Launchers are asked with the settings that the sweep has kept, and the site profiles.
Expected<void> LeftoversOfRuns::add(store::Store& store, const store::SweepRow& sweep) {
  SWEEP_GET(const auto rows, store.allocations(sweep.id));
  OfSweep& left_of_it = ended_.emplace_back(OfSweep{sweep, {}, {}, {}});
  for (const auto& row : rows)
    if (!marked_processes(allocation_key(row.id, row.spool)).empty())
      left_of_it.with_processes.push_back(row);
  SWEEP_GET(const auto places, places_by_launcher(store, sweep.id, rows));
  for (const auto& [launcher, of_it] : places) {
    LaunchRequest request;
    request.on = launcher;
    SWEEP_GET(const auto choice, choose_launcher(sweep.options.launch.value_or(LaunchSettings()), request));
    SWEEP_GET(auto left, choice.config->leftovers(of_it));
    if (left) left_of_it.elsewhere.push_back(std::move(left));
  }
  return {};
}

bool LeftoversOfRuns::any() const {
  return !lines().empty();
}

std::vector<std::string> LeftoversOfRuns::lines() const {
  std::vector<std::string> out;
  for (const auto& each : ended_)
    for (const auto& row : each.with_processes)
      for (const auto& process : marked_processes(allocation_key(row.id, row.spool)))
        out.push_back(fmt::format("process {}  {}  of allocation {}", process.pid, process.command, row.id));
  for (const auto& each : ended_) {
    if (each.orchestrator_job)
      out.push_back(
          fmt::format("Slurm job {}  that is to run sweep {}", *each.orchestrator_job, each.sweep.name));
    for (const auto& left : each.elsewhere) append(out, left->lines());
  }
  return out;
}

std::vector<std::string> LeftoversOfRuns::unanswered() const {
  std::vector<std::string> out;
  for (const auto& each : ended_)
    for (const auto& left : each.elsewhere) append(out, left->unanswered());
  return out;
}

std::vector<std::string> LeftoversOfRuns::end(store::Store& store) {
  std::vector<std::string> failed;
  for (const auto& each : ended_) {
    if (each.with_processes.empty() && each.elsewhere.empty() && !each.orchestrator_job) continue;
    // A database that cannot be written keeps no run from being ended: no other run can begin there.
    const auto other = store.take_lease(each.sweep.id);
    if (other && *other) {
      failed.push_back(fmt::format("sweep {}: {}: left alone", each.sweep.name, holder_text(**other)));
      continue;
    }
    if (each.orchestrator_job)
      if (const auto ended = cancel_waiting_job(db_, each.sweep.name); !ended)
        failed.push_back(ended.error().message);
    for (const auto& left : each.elsewhere) append(failed, left->end());
    // Last: an agent of a job on this machine ends its ranks itself when the job is cancelled. Killed before that, it
    // would leave a failed job.
    for (const auto& row : each.with_processes) kill_orphans(row.spool, row.id);
    if (other)
      if (const auto released = store.release_lease(each.sweep.id); !released)
        failed.push_back(released.error().message);
  }
  return failed;
}

}  // namespace sweep::driver
