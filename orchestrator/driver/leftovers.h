// Leftovers of the ended runs of a database: processes of this machine, jobs of schedulers, processes and
// folders of other hosts.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/launch_config.h"
#include "orchestrator/store/store.h"

namespace sweep::driver {

// A sweep that another process runs: nothing of it is looked at.
struct RunningSweep {
  std::string name;
  store::LeaseHolder holder;
};

class LeftoversOfRuns {
 public:
  // Asks the launchers of all sweeps that no process runs. Error: one of them cannot be asked.
  static Expected<LeftoversOfRuns> find(store::Store&, const std::filesystem::path& db);

  const std::vector<RunningSweep>& running() const { return running_; }
  bool any() const;
  std::vector<std::string> lines() const;       // one for each thing that is left
  std::vector<std::string> unanswered() const;  // "<host>: <why>" of hosts of which nothing is known
  // Ends all of it under the lease of each sweep, so that no run takes over meanwhile what is being ended. A sentence for
  // each thing that did not end.
  std::vector<std::string> end(store::Store&);

 private:
  struct OfSweep {
    store::SweepRow sweep;
    std::vector<store::AllocationRow> with_processes;  // allocations that have processes on this machine
    std::vector<std::unique_ptr<launch::Leftovers>> elsewhere;
    std::optional<i64> orchestrator_job;  // a Slurm job that is to run the sweep
  };
  Expected<void> add(store::Store&, const store::SweepRow&);

  std::filesystem::path db_;
  std::vector<RunningSweep> running_;
  std::vector<OfSweep> ended_;
};

}  // namespace sweep::driver
