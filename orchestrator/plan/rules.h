// Rules: what makes a trial impossible whatever the memory, each small and named. Pure functions of the
// trial.
#pragma once
#include <optional>

#include "orchestrator/predict/memory_model.h"
#include "schema/attempt.h"
#include "schema/outcome.h"
#include "schema/plan_entry.h"
#include "schema/trial.h"

namespace sweep::plan {

// Its reason is a sentence with the equation or the numbers.
struct Objection : predict::Refusal {
  Outcome verdict = Outcome::kPruned;
};

// The first rule that the trial breaks: rank_algebra, range, hardware, divisibility, env; of a model divisibility,
// experts, pipeline, recompute, zero, positions; of the built-in step precision, attention, cuda_graph, host_memory.
// A command must keep to the rules of any program; with a model the model's rules hold too.
std::optional<Objection> first_objection(const Trial&);
// The same, as a prediction under the profile of our own step asks for it.
std::optional<predict::Refusal> step_refusal(const Trial&);
// False of a command whose grid names no model: nothing is known of its memory and time.
bool has_model(const Trial&);

// The objection "unsupported": the training step does not build this yet. It is one table; when a strategy is
// built, its line is deleted.
std::optional<Objection> not_built_yet(const Trial&);

// The objections that come after the rules and the memory: graphs that are captured while steps are timed, and
// not_built_yet().
std::optional<Objection> later_objection(const Trial&, const MeasurePlan&);

void reject(PlanEntry&, const Objection&);

}  // namespace sweep::plan
