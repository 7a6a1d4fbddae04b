// The rank and batch algebra as steps over a Point: world = dp x tp x pp x cp = nodes x gpus_per_node,
// global_batch_size = dp x micro_batch_size x grad_accum, ep divides dp x cp. What does not come out whole
// has no value.
#include <fmt/format.h>

#include <initializer_list>
#include <limits>

#include "orchestrator/grid/spec.h"
#include "schema/axis_domain.h"

namespace sweep::grid {
namespace {

constexpr i64 kMaxWorld = 1'000'000'000;  // ranks; far above any machine
constexpr i64 kMaxBatch = axis_domain("global_batch_size")->max;
constexpr i64 kMaxAccumulation = axis_domain("grad_accum")->max;
constexpr i64 kMaxRanksPerNode = axis_domain("gpus_per_node")->max;

// Degrees reach 10^6 each: their product needs 128 bits. Larger than 64 bits is cut to the largest number.
__extension__ using Wide = __int128;
i64 product(std::initializer_list<i64> factors) {
  constexpr i64 kMost = std::numeric_limits<i64>::max();
  Wide all = 1;
  for (const i64 f : factors) all = all > kMost ? all : all * f;
  return all > kMost ? kMost : static_cast<i64>(all);
}

struct View {  // the numbers of one point by name
  View(const AlgebraSlots& s, const Point& p)
      : nodes(p.cells[s.nodes].i),
        gpus_per_node(p.cells[s.gpus_per_node].i),
        dp(p.cells[s.dp].i),
        tp(p.cells[s.tp].i),
        pp(p.cells[s.pp].i),
        cp(p.cells[s.cp].i),
        ep(p.cells[s.ep].i),
        micro(p.cells[s.micro_batch_size].i),
        accum(p.cells[s.grad_accum].i),
        global(p.cells[s.global_batch_size].i) {}
  i64 nodes, gpus_per_node, dp, tp, pp, cp, ep, micro, accum, global;
};

// Sets `out` to top / bottom if that is whole and within 1..most.
bool whole_quotient(i64 top, i64 bottom, i64 most, Cell& out) {
  if (top % bottom != 0) return false;
  out.i = top / bottom;
  return out.i >= 1 && out.i <= most;
}

bool run_algebra(const Step& step, const GridSpec& spec, const AlgebraSlots& s,
                 const std::vector<bool>& given, Point& point) {
  const View v(s, point);
  const i64 gpus = spec.catalogue_gpus(point.cells[s.hardware].i);
  Cell* const out = step.writes ? &point.cells[*step.writes] : nullptr;
  switch (step.kind) {
    case Step::Kind::kGpusPerNode: {
      if (!given[s.dp] && gpus > 0) return out->i = gpus, true;
      const i64 dp = given[s.dp] ? v.dp : 1;
      return whole_quotient(product({dp, v.tp, v.pp, v.cp}), v.nodes, gpus > 0 ? gpus : kMaxRanksPerNode,
                            *out);
    }
    case Step::Kind::kDp:
      if (!given[s.gpus_per_node] && gpus == 0) return out->i = 1, true;
      return whole_quotient(product({v.nodes, v.gpus_per_node}), product({v.tp, v.pp, v.cp}), kMaxWorld,
                            *out);
    case Step::Kind::kWorld:
      return out->i = product({v.dp, v.tp, v.pp, v.cp}), out->i <= kMaxWorld;
    case Step::Kind::kGradAccum:
      return whole_quotient(v.global, product({v.dp, v.micro}), kMaxAccumulation, *out);
    case Step::Kind::kGlobalBatch:
      return out->i = product({v.dp, v.micro, v.accum}), out->i <= kMaxBatch;
    case Step::Kind::kCheckRanks:
      if (gpus > 0 && v.gpus_per_node > gpus) return false;
      return !given[s.dp] || product({v.nodes, v.gpus_per_node}) == product({v.dp, v.tp, v.pp, v.cp});
    case Step::Kind::kCheckExperts:
      return product({v.dp, v.cp}) % v.ep == 0;
    case Step::Kind::kCheckBatch:
      return v.global == product({v.dp, v.micro, v.accum});
    case Step::Kind::kDerived:
      break;
  }
  return true;
}

bool is_axis_value(const Derived& derived, i64 value) {
  return derived.min == derived.max || (value >= derived.min && value <= derived.max);
}

std::string not_whole(std::string_view equation, i64 top, i64 bottom) {
  if (top % bottom != 0) return fmt::format("{} = {} is not whole", equation, quotient_text(top, bottom));
  return fmt::format("{} = {} is too large", equation, top / bottom);
}

Reason explain_ranks_per_node(const View& v, i64 gpus, const std::string& hardware, i64 dp) {
  const i64 world = product({dp, v.tp, v.pp, v.cp});
  const auto equation = fmt::format("gpus_per_node = dp x tp x pp x cp / nodes = {} x {} x {} x {} / {}", dp,
                                    v.tp, v.pp, v.cp, v.nodes);
  if (gpus > 0 && world % v.nodes == 0) {
    return {"rank_algebra",
            fmt::format("{} = {} is more than the {} of {}", equation, world / v.nodes, gpus, hardware)};
  }
  return {"rank_algebra", not_whole(equation, world, v.nodes)};
}

Reason explain_algebra(const Step& step, const GridSpec& spec, const AlgebraSlots& s,
                       const std::vector<bool>& given, const Point& point) {
  const View v(s, point);
  const i64 hardware = point.cells[s.hardware].i;
  const i64 gpus = spec.catalogue_gpus(hardware);
  switch (step.kind) {
    case Step::Kind::kGpusPerNode:
      return explain_ranks_per_node(v, gpus, spec.scope.words.at(hardware), given[s.dp] ? v.dp : 1);
    case Step::Kind::kDp:
      return {"rank_algebra",
              not_whole(fmt::format("dp = nodes x gpus_per_node / (tp x pp x cp) = {} x {} / ({} x {} x {})",
                                    v.nodes, v.gpus_per_node, v.tp, v.pp, v.cp),
                        product({v.nodes, v.gpus_per_node}), product({v.tp, v.pp, v.cp}))};
    case Step::Kind::kWorld:
      return {"rank_algebra",
              fmt::format("world = dp x tp x pp x cp = {} x {} x {} x {} is more than {} ranks", v.dp, v.tp,
                          v.pp, v.cp, kMaxWorld)};
    case Step::Kind::kGradAccum:
      return {
          "divisibility",
          not_whole(fmt::format("grad_accum = global_batch_size / (dp x micro_batch_size) = {} / ({} x {})",
                                v.global, v.dp, v.micro),
                    v.global, product({v.dp, v.micro}))};
    case Step::Kind::kGlobalBatch:
      return {
          "divisibility",
          fmt::format("global_batch_size = dp x micro_batch_size x grad_accum = {} x {} x {} is more than {}",
                      v.dp, v.micro, v.accum, kMaxBatch)};
    case Step::Kind::kCheckRanks:
      if (gpus > 0 && v.gpus_per_node > gpus) {
        return {"rank_algebra", fmt::format("gpus_per_node = {} is more than the {} of {}", v.gpus_per_node,
                                            gpus, spec.scope.words.at(hardware))};
      }
      return {
          "rank_algebra",
          fmt::format("nodes x gpus_per_node = {} x {} = {}, but dp x tp x pp x cp = {} x {} x {} x {} = {}",
                      v.nodes, v.gpus_per_node, product({v.nodes, v.gpus_per_node}), v.dp, v.tp, v.pp, v.cp,
                      product({v.dp, v.tp, v.pp, v.cp}))};
    case Step::Kind::kCheckExperts:
      return {"rank_algebra", fmt::format("dp x cp / ep = {} x {} / {} = {} is not whole", v.dp, v.cp, v.ep,
                                          quotient_text(product({v.dp, v.cp}), v.ep))};
    case Step::Kind::kCheckBatch:
      return {
          "divisibility",
          fmt::format("dp x micro_batch_size x grad_accum = {} x {} x {} = {}, but global_batch_size = {}",
                      v.dp, v.micro, v.accum, product({v.dp, v.micro, v.accum}), v.global)};
    case Step::Kind::kDerived:
      break;
  }
  return {};
}

StepResult run_derived(const Derived& derived, Point& point, Failure& failure) {
  Cell value{0};
  if (!evaluate(derived.code, point, value, failure)) {
    return failure.trouble == EvalError::kOverflow ? StepResult::kOverflow : StepResult::kNoValue;
  }
  if (!is_axis_value(derived, value.i)) {
    failure = {EvalError::kNone, 0, value, {0}};
    return StepResult::kNoValue;
  }
  point.cells[derived.slot] = value;
  return StepResult::kDone;
}

Reason explain_derived(const Derived& d, const GridSpec& spec, const Point& point, const Failure& failure) {
  if (failure.trouble != EvalError::kNone) {
    const std::string why = explain(failure, d.code, spec.scope, point);
    const Span span = d.code.spans[failure.op];
    const bool all = span.begin == 0 && span.end == d.code.text.size();
    return {failure.trouble == EvalError::kAbsent ? "derive" : "divisibility",
            all ? fmt::format("{} = {}", d.name, why) : fmt::format("{} = {}: {}", d.name, d.code.text, why)};
  }
  return {"derive", fmt::format("{} = {} = {} = {} is outside {} to {}", d.name, d.code.text,
                                whole_with_values(d.code, spec.scope, point), failure.a.i, d.min, d.max)};
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
  failure = {EvalError::kAbsent, 0, {0}, {0}};
  if (step.kind == Step::Kind::kDerived) {
    result = run_derived(spec.derived[step.derived], point, failure);
  } else {
    bool ready = true;  // what it reads is there
    for (const Slot slot : step.reads) ready = ready && point.held[slot] == Presence::kValue;
    if (ready && run_algebra(step, spec, slots, given, point)) result = StepResult::kDone;
  }
  if (step.writes)
    point.held[*step.writes] = result == StepResult::kDone ? Presence::kValue : Presence::kFailed;
  return result;
}

Reason explain_step(const Step& step, const GridSpec& spec, const AlgebraSlots& slots,
                    const std::vector<bool>& given, const Point& point, const Failure& failure) {
  if (step.kind == Step::Kind::kDerived)
    return explain_derived(spec.derived[step.derived], spec, point, failure);
  return explain_algebra(step, spec, slots, given, point);
}

}  // namespace sweep::grid
