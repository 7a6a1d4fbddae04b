// The steps of a Program over a Point: the relations of the rank algebra between its axes, and `derive`. What
// does not come out whole has no value.
#include <fmt/format.h>

#include "orchestrator/grid/spec.h"

namespace sweep::grid {
namespace {

using shape::Relation;
using Solved = tl::expected<i64, shape::Violation>;

shape::RankSizes sizes_of(const AlgebraSlots& s, const Point& p, i64 node_gpus) {
  const auto at = [&](Slot slot) { return p.cells[slot].i; };
  return {.nodes = at(s.nodes),
          .gpus_per_node = at(s.gpus_per_node),
          .dp = at(s.dp),
          .tp = at(s.tp),
          .pp = at(s.pp),
          .cp = at(s.cp),
          .ep = at(s.ep),
          .dp_shard = 1,
          .micro_batch_size = at(s.micro_batch_size),
          .grad_accum = at(s.grad_accum),
          .global_batch_size = at(s.global_batch_size),
          .node_gpus = node_gpus};
}

// Without `dp` in the grid the GPUs of a node are all used, and dp follows; without GPUs dp is 1, and the
// ranks of a node follow.
Solved solve(Relation relation, shape::RankSizes& sizes, const AlgebraSlots& s,
             const std::vector<bool>& given) {
  if (relation == Relation::kGpusPerNode && !given[s.dp]) {
    if (sizes.node_gpus > 0) return sizes.node_gpus;
    sizes.dp = 1;
  }
  if (relation == Relation::kDp && !given[s.gpus_per_node] && sizes.node_gpus == 0) return 1;
  return shape::solve(relation, sizes);
}

bool run_relation(const Step& step, const GridSpec& spec, const AlgebraSlots& s,
                  const std::vector<bool>& given, Point& point) {
  auto sizes = sizes_of(s, point, spec.catalogue_gpus(point.cells[s.hardware].i));
  const Solved solved = solve(*step.relation, sizes, s, given);
  if (solved && step.writes) point.cells[*step.writes].i = *solved;
  return solved.has_value();
}

Reason explain_relation(const Step& step, const GridSpec& spec, const AlgebraSlots& s,
                        const std::vector<bool>& given, const Point& point) {
  const i64 hardware = point.cells[s.hardware].i;
  auto sizes = sizes_of(s, point, spec.catalogue_gpus(hardware));
  const Solved solved = solve(*step.relation, sizes, s, given);
  if (solved) return {};
  const bool batch = *step.relation == Relation::kGradAccum || *step.relation == Relation::kGlobalBatch ||
                     *step.relation == Relation::kBatch;
  return {batch ? "divisibility" : "rank_algebra",
          sentence(solved.error(), sizes, spec.scope.words.at(hardware))};
}

bool is_axis_value(const Derived& derived, i64 value) {
  return derived.min == derived.max || (value >= derived.min && value <= derived.max);
}

StepResult run_derived(const Derived& derived, Point& point, Failure& failure) {
  Cell value{0};
  if (!evaluate(derived.code, point, value, failure)) {
    return failure.trouble == EvalError::kOverflow ? StepResult::kOverflow : StepResult::kNoValue;
  }
  if (!is_axis_value(derived, value.i)) {
    failure = {EvalError::kNone, {}, value, {0}};
    return StepResult::kNoValue;
  }
  point.cells[derived.slot] = value;
  return StepResult::kDone;
}

Reason explain_derived(const Derived& d, const GridSpec& spec, const Point& point, const Failure& failure) {
  if (failure.trouble != EvalError::kNone) {
    const std::string why = explain(failure, d.code, spec.scope, point);
    const Span span = failure.at;
    const bool all = span.begin == 0 && span.end == d.code.text.size();
    return {failure.trouble == EvalError::kAbsent ? "derive" : "divisibility",
            all ? fmt::format("{} = {}", d.name, why) : fmt::format("{} = {}: {}", d.name, d.code.text, why)};
  }
  return {"derive",
          fmt::format("{} = {} = {} = {} is outside {} to {}", d.name, d.code.text,
                      with_values(d.code, d.code.whole(), spec.scope, point), failure.a.i, d.min, d.max)};
}

}  // namespace

AlgebraSlots::AlgebraSlots(const Scope& s)
    : hardware(s.slot("hardware")),
      nodes(s.slot("nodes")),
      gpus_per_node(s.slot("gpus_per_node")),
      dp(s.slot("dp")),
      tp(s.slot("tp")),
      pp(s.slot("pp")),
      cp(s.slot("cp")),
      ep(s.slot("ep")),
      micro_batch_size(s.slot("micro_batch_size")),
      grad_accum(s.slot("grad_accum")),
      global_batch_size(s.slot("global_batch_size")),
      world(s.slot("world")) {}

StepResult run_step(const Step& step, const GridSpec& spec, const AlgebraSlots& slots,
                    const std::vector<bool>& given, Point& point, Failure& failure) {
  StepResult result = StepResult::kNoValue;
  failure = {EvalError::kAbsent, {}, {0}, {0}};
  if (!step.relation) {
    result = run_derived(spec.derived[step.derived], point, failure);
  } else {
    bool ready = true;  // the values it reads are known
    for (const Slot slot : step.reads) ready = ready && point.held[slot] == Presence::kValue;
    if (ready && run_relation(step, spec, slots, given, point)) result = StepResult::kDone;
  }
  if (step.writes)
    point.held[*step.writes] = result == StepResult::kDone ? Presence::kValue : Presence::kFailed;
  return result;
}

Reason explain_step(const Step& step, const GridSpec& spec, const AlgebraSlots& slots,
                    const std::vector<bool>& given, const Point& point, const Failure& failure) {
  if (!step.relation) return explain_derived(spec.derived[step.derived], spec, point, failure);
  return explain_relation(step, spec, slots, given, point);
}

}  // namespace sweep::grid
