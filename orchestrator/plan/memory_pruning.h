// Pruning by predicted memory: what would need more than a trial may use, by more than a margin, does not
// run. What is nearer to the limit runs, or is asked of the step itself first (a dry run), whose answer has
// no margin.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schema/attempt.h"
#include "schema/plan_entry.h"

namespace sweep::plan {

// The predicted memory over what a rank may use: 1.1 is a tenth too much. nullopt: no limit is known, or the trial
// does not run the built-in step.
std::optional<double> share_of_limit(const PlanEntry&);
// Whether its env changes what the allocator of its GPU reserves: no model of that holds, and bytes alone decide.
bool changes_allocator(const PlanEntry&);

// The memory that a dry run of the step found for a trial.
struct MeasuredMemory {
  double bytes = 0;  // allocated on the fullest rank
  std::string
      refusal;  // why the allocator of its GPU cannot hold it, a sentence; empty: it can, or there is no GPU
};

struct MemoryPruning {
  double margin = 0.1;
  std::map<std::string, MeasuredMemory> dry_runs;  // by trial id; they replace the prediction
  double audit = 0;  // the share of pruned trials that stays admitted (schema/audit.h)
  MeasurePlan measure{};
};
// Prunes admitted trials (rule `memory`); a dry run's answer replaces `predicted`, and brings back what only
// this pruned, unless something that is asked after the memory speaks against it (later_objection()).
void prune_memory(std::vector<PlanEntry>&, const MemoryPruning&);

// Admitted or not, what lies above its limit by the margin at most, or below it: on a processor by the margin and at
// most a tenth, on a GPU by at most a fifth, since its allocator reserves more than it hands out (7 % in the median of
// 104 configurations, docs/measurements/2026-11-23-reserved.md).
std::vector<const PlanEntry*> near_memory_limit(std::span<const PlanEntry>, double margin);

}  // namespace sweep::plan
