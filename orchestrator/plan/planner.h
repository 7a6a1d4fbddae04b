// The planner decides for each trial: admitted, or pruned with a rule and a sentence; and in which order they
// run.
#pragma once
#include <optional>
#include <vector>

#include "base/expected.h"
#include "orchestrator/predict/predictor.h"
#include "schema/attempt.h"
#include "schema/plan_entry.h"

namespace sweep::plan {

// The resources of the machine or allocation; the planner prunes what cannot run there.
struct Resources {
  i64 cpu_slots = 1;  // CPU ranks at once on this machine
  i64 gpus = 0;       // GPUs of this machine
  i64 host_memory_bytes = 0;
};

// Axes that a grid of commands does not give, so that the program decides them (its files, its own defaults). Pruning then
// counts the least model states that the program could choose: ZeRO stage 3, bf16.
struct LeftToProgram {
  bool zero = false, precision = false;
};

// Fills admitted, rule, reason, predicted and order of each entry (already-pruned entries keep their reason).
// Order: set_order(). Pure.
void decide(std::vector<PlanEntry>&, const MeasurePlan&, const predict::Predictor& = predict::roofline(),
            LeftToProgram = {});

// Sets PlanEntry::order: admitted first; by placement, so that one allocation serves neighbours; within it the best
// predicted rate of each model and sequence length first, then the second best of each. Ties stay as they are in
// `entries`, which is the order of the grid: an id, of which a script's path is a part, would shuffle them.
void set_order(std::vector<PlanEntry>&);

// Prunes admitted trials that this machine cannot hold at all: more ranks than slots, GPUs it lacks, host
// memory below what the model states of the CPU ranks need. For the local launcher; an allocation elsewhere
// has its own resources.
void prune_beyond(std::vector<PlanEntry>&, const Resources&, LeftToProgram = {});

// Predicted peak bytes over what a rank may use; nullopt: one of them is not known.
std::optional<double> memory_share(const PlanEntry&);

// Deadlines for a trial from its predicted time, with floors: 120 s for the start and the first step, 30 s for later steps;
// of commands 600 s and 120 s.
Deadlines deadlines_for(const Prediction&, const Trial&, const MeasurePlan&);

}  // namespace sweep::plan
