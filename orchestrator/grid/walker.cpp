#include "orchestrator/grid/walker.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "schema/codec.h"

namespace sweep::grid {

Walker::Walker(Expansion& expansion, const Setup& setup)
    : expansion_(expansion),
      spec_(*expansion.grid.spec),
      setup_(setup),
      slots_(spec_.scope),
      point_(setup.start),
      source_(fmt::format("{}:{}", expansion.grid.path.string(), setup.source.line)),
      stages_(setup.dimensions.size() + 1),
      step_failures_(setup.program.size()),
      clause_failures_(spec_.where.size()),
      step_failed_(setup.program.size(), false),
      clause_failed_(spec_.where.size(), false) {
  plan_stages();
}

// The stage of a step or clause is the innermost wheel it reads, directly or through what is derived.
void Walker::plan_stages() {
  std::vector<std::size_t> stage_of(spec_.scope.size(), 0);
  for (std::size_t d = 0; d < setup_.dimensions.size(); ++d) {
    for (const Slot slot : setup_.dimensions[d].slots) stage_of[slot] = d + 1;
  }
  const auto innermost = [&](const std::vector<Slot>& reads) {
    std::size_t stage = 0;
    for (const Slot slot : reads) stage = std::max(stage, stage_of[slot]);
    return stage;
  };
  for (std::size_t i = 0; i < setup_.program.size(); ++i) {
    const Step& step = setup_.program[i];
    const std::size_t stage = innermost(step.reads);
    stages_[stage].steps.push_back(static_cast<std::uint16_t>(i));
    if (step.writes) stage_of[*step.writes] = stage;
  }
  for (std::size_t i = 0; setup_.filtered && i < spec_.where.size(); ++i) {
    stages_[innermost(spec_.where[i].code.reads)].clauses.push_back(static_cast<std::uint16_t>(i));
  }
  for (std::size_t d = setup_.dimensions.size(); d-- > 0;) {
    if (__builtin_mul_overflow(stages_[d + 1].below, setup_.dimensions[d].count, &stages_[d].below)) {
      stages_[d].below = std::numeric_limits<std::uint64_t>::max();
    }
  }
}

Expected<bool> Walker::run() {
  int dropped = kNone;
  const bool fine = settle(0, dropped);
  const Flow flow = fine ? walk(0, dropped) : Flow::kStop;
  if (error_) return tl::unexpected(*error_);
  return flow == Flow::kGoOn;
}

Walker::Flow Walker::walk(std::size_t stage, int dropped) {
  if (dropped != kNone && expansion_.list_dropped == 0) {
    expansion_.counts.dropped_where += stages_[stage].below;
    expansion_.counts.points += stages_[stage].below;
    return Flow::kGoOn;
  }
  if (stage == setup_.dimensions.size()) return leaf(dropped);
  const Dimension& wheel = setup_.dimensions[stage];
  const std::size_t width = wheel.slots.size();
  for (std::size_t row = 0; row < wheel.count; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      point_.cells[wheel.slots[i]] = wheel.cells[row * width + i];
      point_.held[wheel.slots[i]] = wheel.held[row * width + i];
    }
    int now = dropped;
    if (!settle(stage + 1, now) || walk(stage + 1, now) == Flow::kStop) return Flow::kStop;
  }
  return Flow::kGoOn;
}

// Runs what this wheel settles; false: an error. A dropped point still has its steps run, for its listing.
bool Walker::settle(std::size_t index, int& dropped) {
  Stage& stage = stages_[index];
  stage.troubles = index == 0 ? 0 : stages_[index - 1].troubles;
  return run_steps(stage) && (dropped != kNone || run_clauses(stage, dropped));
}

bool Walker::run_steps(Stage& stage) {
  for (const std::uint16_t i : stage.steps) {
    const Step& step = setup_.program[i];
    Failure& failure = step_failures_[i];
    const StepResult result = run_step(step, spec_, slots_, setup_.given, point_, failure);
    step_failed_[i] = result != StepResult::kDone;
    stage.troubles += step_failed_[i] ? 1 : 0;
    if (result == StepResult::kOverflow) {
      const Derived& d = spec_.derived[step.derived];
      error_ = overflow(d.place, d.name, d.name + ": " + explain(failure, d.code, spec_.scope, point_));
      return false;
    }
  }
  return true;
}

bool Walker::run_clauses(Stage& stage, int& dropped) {
  for (const std::uint16_t i : stage.clauses) {
    const Clause& clause = spec_.where[i];
    Cell value{0};
    const bool known = evaluate(clause.code, point_, value, clause_failures_[i]);
    clause_failed_[i] = !known;
    stage.troubles += known ? 0 : 1;
    if (known && value.i == 0) {
      dropped = i;
      return true;
    }
    if (!known && clause_failures_[i].trouble == EvalError::kOverflow) {
      error_ = overflow(clause.place, clause.code.text,
                        explain(clause_failures_[i], clause.code, spec_.scope, point_));
      return false;
    }
  }
  return true;
}

Walker::Flow Walker::leaf(int dropped) {
  if (setup_.filtered) expansion_.counts.points++;
  if (dropped != kNone) {
    expansion_.counts.dropped_where++;
    std::uint64_t listed = 0;
    const Flow flow = emit(false, why_dropped(dropped), listed);
    expansion_.list_dropped -= listed;
    return flow;
  }
  if (const Exclusion* exclusion = setup_.filtered ? excluded() : nullptr) {
    expansion_.counts.dropped_exclude++;
    if (expansion_.list_dropped == 0) return Flow::kGoOn;
    std::uint64_t listed = 0;
    const Flow flow = emit(false, why_excluded(*exclusion), listed);
    expansion_.list_dropped -= listed;
    return flow;
  }
  if (stages_.back().troubles > 0) {
    auto why = why_pruned();
    return is_spare_size(why) ? Flow::kGoOn : emit(false, std::move(why), expansion_.counts.pruned);
  }
  return emit(true, {}, expansion_.counts.admitted);
}

// A size of `micro_batch_size: auto` that does not divide the batch was asked for by no one; the smallest one
// says why a layout has none at all. What a `where` cannot divide is no spare size.
bool Walker::is_spare_size(const Reason& why) const {
  if (why.rule != "divisibility" || std::ranges::find(step_failed_, true) == step_failed_.end()) return false;
  const auto sizes = std::ranges::find_if(setup_.dimensions, &Dimension::automatic);
  return sizes != setup_.dimensions.end() &&
         point_.cells[slots_.micro_batch_size].i != sizes->cells.front().i;
}

const Exclusion* Walker::excluded() const {
  for (const Exclusion& exclusion : spec_.exclude) {
    const auto holds = [&](const Exclusion::Match& match) {
      if (point_.held[match.slot] == Presence::kAbsent) return match.or_absent;
      if (point_.held[match.slot] == Presence::kFailed) return false;
      const Cell value = point_.cells[match.slot];
      const bool real = spec_.scope.at(match.slot).type == Type::kReal;
      return std::ranges::any_of(match.any_of,
                                 [&](Cell cell) { return real ? cell.r == value.r : cell.i == value.i; });
    };
    if (std::all_of(exclusion.matches.begin(), exclusion.matches.end(), holds)) return &exclusion;
  }
  return nullptr;
}

// Counts and hands on a trial not seen before, or seen only as a drop. A listed drop that is a trial already seen is
// neither.
Walker::Flow Walker::emit(bool admitted, Reason reason, std::uint64_t& count) {
  PlanEntry entry;
  std::string unsupported;
  entry.trial = trial(unsupported);
  entry.id = trial_id(entry.trial);
  const bool is_drop = reason.rule == "where" || reason.rule == "exclude";
  const auto id = std::stoull(entry.id, nullptr, 16);
  const bool is_new = expansion_.seen.insert(id).second;
  if (!is_new && (is_drop || expansion_.drops.erase(id) == 0)) {
    expansion_.counts.duplicates += is_drop ? 0 : 1;
    return Flow::kGoOn;
  }
  if (is_drop) expansion_.drops.insert(id);
  ++count;
  entry.admitted = admitted && unsupported.empty();
  entry.rule = std::move(reason.rule);
  entry.reason = std::move(reason.sentence);
  if (admitted && !unsupported.empty()) {
    entry.verdict = Outcome::kUnsupported;
    entry.rule = "unsupported";
    entry.reason = std::move(unsupported);
  }
  entry.source = source_;
  return expansion_.sink(std::move(entry)) ? Flow::kGoOn : Flow::kStop;
}

}  // namespace sweep::grid
