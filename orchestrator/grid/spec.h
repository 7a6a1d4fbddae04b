// GridSpec: a grid file as read and checked: dimensions to walk, steps that derive what follows, clauses that
// drop. Immutable once read; expanding only reads it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/shape/rank_algebra.h"
#include "orchestrator/grid/document.h"
#include "orchestrator/grid/expression.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/grid/scope.h"
#include "orchestrator/grid/workload.h"

namespace sweep::grid {

// One odometer wheel: an axis of `grid`, or a group of `zip`. Each position sets a few slots at once (a model
// sets its dimensions too).
struct Dimension {
  std::vector<Slot> slots;
  std::vector<Cell> cells;  // positions x slots
  std::vector<Presence> held;
  std::size_t count = 0;
  bool automatic = false;  // micro-batch sizes from which a run chooses
  Place place{};           // place in the file
};

struct ModelEntry {
  i64 word = 0;  // its label
  ModelSpec spec;
};

struct Derived {
  std::string name;
  Slot slot = 0;
  Expression code;
  Place place;
  i64 min = 0, max = 0;  // range of a whole-number axis; equal: a label or a flag, anything goes
};

// One thing that follows from others: a relation of the rank algebra, or a `derive` entry.
struct Step {
  std::optional<shape::Relation> relation;  // nullopt: entry `derived` of derive
  std::uint16_t derived = 0;
  std::vector<Slot> reads;
  std::optional<Slot> writes;  // a relation that compares writes nothing
};

using Program = std::vector<Step>;  // steps in an order in which each finds what it reads

struct Clause {
  Expression code;
  Place place;
};

// A partial match: all of its axes hold one of the listed values.
struct Exclusion {
  struct Match {
    Slot slot = 0;
    std::vector<Cell> any_of;
    bool or_absent = false;
  };
  std::vector<Match> matches;
  Place place;
  std::string text;
};

struct Included {
  std::vector<std::pair<Slot, Cell>> cells;
  std::vector<Slot> absent;  // optional axes set to null
  std::vector<bool> given;
  Program program;
  Place place;
};

class GridSpec {
 public:
  Scope scope;
  std::vector<ModelEntry> models;
  std::vector<std::int32_t> gpus_per_node;  // index: the number of a hardware name; 0: cpu or no hardware
  Point start;                              // defaults and `base`
  std::vector<bool> given;                  // slots set by base, grid, zip or derive (by size of the scope)
  std::vector<bool> base_given;             // slots that base or derive sets: those of an included point
  std::vector<Dimension> dimensions;        // outermost first
  std::vector<Derived> derived;             // values in file order
  std::optional<Slot> stage;                // the label that names the stage of a trial
  std::vector<std::string> stages;          // their names, in order
  Program program;
  std::vector<Clause> where;
  std::vector<Exclusion> exclude;
  std::vector<Included> include;
  std::optional<CommandTemplates> workload;
  bool base_only = false;  // neither grid, zip nor include: the base itself is the one point
  Place grid_place;
  std::uint64_t points = 0;

  i64 catalogue_gpus(i64 hardware_word) const {
    const auto index = static_cast<std::size_t>(hardware_word);
    return index < gpus_per_node.size() ? gpus_per_node[index] : 0;
  }
};

// The start of an included point: what base gives, and its own values over it.
Point start_of(const GridSpec&, const Included&);

// The slots the algebra works on, looked up once.
struct AlgebraSlots {
  explicit AlgebraSlots(const Scope&);
  Slot hardware, nodes, gpus_per_node, dp, tp, pp, cp, ep, micro_batch_size, grad_accum, global_batch_size,
      world;
};

// Orders the algebra and `derive` for the slots that are given; `any_cpu`: a point may be on the hardware
// "cpu". A cycle is refused by naming it.
struct Cycle {
  std::size_t derived = 0;  // an entry of `derive` on it
  std::string path;         // "a -> b -> a"
};
tl::expected<Program, Cycle> order_steps(const GridSpec&, const std::vector<bool>& given, bool any_cpu,
                                         const std::vector<std::vector<Slot>>& derived_reads);

// The slots of a grid with a workload whose values change what the program gets, in its words, variables
// and files or in how many processes it has; also by way of `derive`, of the algebra or of `where`. REQUIRES:
// the workload is bound.
std::vector<bool> used_slots(const GridSpec&);
// used: the answer of used_slots().
// Names of the axes that are in use, are given by the grid, place the trial, or follow from such, with a space
// before and after each.
std::string known_axes(const GridSpec&, std::vector<bool> used);
// A point of `include` that the program cannot tell from an earlier one, or from base beside a grid; and an axis in which
// they differ. nullopt: there is none.
struct UnusedValue {
  Place place;
  Slot slot = 0;
};
std::optional<UnusedValue> unused_value(const GridSpec&, const std::vector<bool>& used);
// The first dimension with several values of which none is in use; null: there is none.
const Dimension* unused_dimension(const GridSpec&, const std::vector<bool>& used);

// Runs one step; false: it has no value (then its slot is kFailed). Overflow of an expression is an error of
// the grid.
enum class StepResult { kDone, kNoValue, kOverflow };
StepResult run_step(const Step&, const GridSpec&, const AlgebraSlots&, const std::vector<bool>& given, Point&,
                    Failure&);

// Why a step had no value: the rule and a sentence with the numbers.
struct Reason {
  std::string rule, sentence;
};
Reason explain_step(const Step&, const GridSpec&, const AlgebraSlots&, const std::vector<bool>& given,
                    const Point&, const Failure&);

}  // namespace sweep::grid
