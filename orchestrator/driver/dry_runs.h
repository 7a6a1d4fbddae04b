// Dry runs: the memory of trials as the training step itself asks for it, on tensors without data
// (`sweep-rank dry-run`).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/plan_entry.h"

namespace sweep::driver {

struct DryRun {
  double bytes = 0;     // bytes of the fullest rank
  std::string error;    // why the step does not run it; bytes are 0 then
  std::string refusal;  // why the allocator of its GPU cannot hold it; empty: it can, or there is no GPU
};

// The dry runs by trial id. progress(done) is called after each batch. Error: sweep-rank is missing or fails.
Expected<std::map<std::string, DryRun>> dry_runs(const std::vector<const PlanEntry*>&,
                                                 const std::function<void(std::size_t done)>& progress);

}  // namespace sweep::driver
