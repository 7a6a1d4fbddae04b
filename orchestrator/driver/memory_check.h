// Prunes the trials of a plan that do not fit: by predicted memory, and near the limit of a GPU by dry runs of the
// step, whose blocks go through a model of CUDA's caching allocator. The prediction alone does not know what the
// allocator reserves beyond what it hands out.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "orchestrator/driver/planning.h"

namespace sweep::driver {

enum class DryRunScope {
  kNone,  // the predictions decide
  // Trials on GPUs near their limit, the nearest first, as many as one process answers in a few seconds. Where
  // sweep-rank is missing or fails, the predictions stand.
  kNearest,
  // Every trial near its limit, on processors with a cap too. Error: sweep-rank is missing or fails.
  kAll,
};

struct MemoryCheck {
  std::size_t near = 0;      // trials near their limit
  std::size_t measured = 0;  // trials measured by dry runs
};

// `audit`: the share of pruned trials that runs all the same (schema/audit.h). say(line): progress, for people.
Expected<MemoryCheck> check_memory(Planned&, DryRunScope, double audit,
                                   const std::function<void(const std::string&)>& say);

}  // namespace sweep::driver
