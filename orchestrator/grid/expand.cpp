// Expansion: included points first (they bypass `where` and `exclude`), then the grid. And what a point
// becomes: a Trial, and the sentence for one that was dropped or pruned.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "orchestrator/grid/walker.h"
#include "schema/codec.h"
#include "schema/labels.h"

namespace sweep::grid {
namespace {

// One per type of fields.def, whichever of them it uses.
void set(i64& member, Cell cell, bool held, const Words&) {
  member = held ? cell.i : 0;
}
void set(bool& member, Cell cell, bool held, const Words&) {
  member = held && cell.i != 0;
}
[[maybe_unused]] void set(double& member, Cell cell, bool held, const Words&) {
  member = held ? cell.r : 0;
}
void set(std::string& member, Cell cell, bool held, const Words& words) {
  member = held ? words.at(cell.i) : "";
}
template <AxisChoice Enum>
void set(Enum& member, Cell cell, bool, const Words& words) {
  member = *choice_from<Enum>(words.at(cell.i));  // the reader let no other word in
}
void set(std::optional<i64>& member, Cell cell, bool held, const Words&) {
  if (held) {
    member = cell.i;
  } else {
    member.reset();
  }
}

nlohmann::json as_json(Cell cell, Type type, const Words& words) {
  switch (type) {
    case Type::kInt:
      return cell.i;
    case Type::kReal:
      return cell.r;
    case Type::kBool:
      return cell.i != 0;
    case Type::kText:
      return words.at(cell.i);
  }
  return nullptr;
}

}  // namespace

// In the trial of a pruned point, a number that did not come out whole is 0 (no axis takes 0 there).
Trial Walker::trial(std::string& unsupported) const {
  Trial trial;
  const Words& words = spec_.scope.words;
  Slot slot = 0;
  for_each_axis(trial, [&](const FieldInfo&, const auto&, auto& member) {
    set(member, point_.cells[slot], point_.held[slot] == Presence::kValue, words);
    ++slot;
  });
  const i64 model = point_.cells[spec_.scope.slot("model")].i;
  for (const ModelEntry& entry : spec_.models) {
    if (entry.word == model) trial.spec = entry.spec;
  }
  trial.model = words.at(model);
  trial.labels = labels();
  if (spec_.workload) {
    trial.workload = Workload::kCommand;
    const auto rendered = spec_.workload->render(spec_.scope, point_, trial, setup_.given);
    trial.program = dump(to_json(rendered.command));
    for (const std::string& sentence : rendered.unsupported)
      unsupported += (unsupported.empty() ? "" : "; ") + sentence;
  }
  return trial;
}

std::string Walker::labels() const {
  nlohmann::json out;
  if (spec_.workload) {
    out[std::string(kLabelAxes)] = spec_.workload->known();
    for (const OwnAxis& axis : spec_.workload->axes())
      out[axis.name] = as_json(point_.cells[axis.slot], axis.type, spec_.scope.words);
    for (const OwnAxis& axis : spec_.workload->axes())
      if (!axis.unit.empty()) out[std::string(kLabelUnits)][axis.name] = axis.unit;
  }
  for (const Derived& derived : spec_.derived) {
    const Symbol& symbol = spec_.scope.at(derived.slot);
    if (symbol.origin != Origin::kLabel) continue;
    const bool held = point_.held[derived.slot] == Presence::kValue;
    out[derived.name] =
        held ? as_json(point_.cells[derived.slot], symbol.type, spec_.scope.words) : nlohmann::json();
  }
  if (spec_.stage && point_.held[*spec_.stage] == Presence::kValue) {
    const std::string& name = spec_.scope.words.at(point_.cells[*spec_.stage].i);
    out[std::string(kStageLabel)] = name;
    out[std::string(kStageNumber)] = std::ranges::find(spec_.stages, name) - spec_.stages.begin();
  }
  return out.is_null() ? "" : dump(out);
}

std::string Walker::at(Place place) const {
  return fmt::format("{}:{}:{}", expansion_.grid.path.string(), place.line, place.column);
}

Error Walker::overflow(Place place, const std::string& subject, const std::string& why) const {
  return Error{fmt::format("{}: {}; keep it smaller", at(place), why),
               ErrorKind::kInvalidValue,
               subject,
               expansion_.grid.path.string(),
               place.line,
               place.column};
}

Reason Walker::why_dropped(int clause) const {
  const Clause& c = spec_.where[static_cast<std::size_t>(clause)];
  return {"where", fmt::format("excluded by where: {} (`{}`, {})", values_read(c.code, spec_.scope, point_),
                               c.code.text, at(c.place))};
}

Reason Walker::why_excluded(const Exclusion& exclusion) const {
  std::string values;
  for (const auto& match : exclusion.matches) {
    const Symbol& symbol = spec_.scope.at(match.slot);
    const bool held = point_.held[match.slot] == Presence::kValue;
    values +=
        fmt::format("{}{}: {}", values.empty() ? "" : ", ", symbol.name,
                    held ? value_text(point_.cells[match.slot], symbol.type, spec_.scope.words) : "null");
  }
  return {"exclude", fmt::format("exclude matches {{{}}} ({})", values, at(exclusion.place))};
}

// The first trouble in the order of the program is the cause; what follows from it has no value either.
Reason Walker::why_pruned() const {
  for (std::size_t i = 0; i < setup_.program.size(); ++i) {
    if (step_failed_[i])
      return explain_step(setup_.program[i], spec_, slots_, setup_.given, point_, step_failures_[i]);
  }
  for (std::size_t i = 0; i < spec_.where.size(); ++i) {
    if (!clause_failed_[i]) continue;
    const Clause& c = spec_.where[i];
    return {clause_failures_[i].trouble == EvalError::kAbsent ? "where" : "divisibility",
            fmt::format("where `{}`: {} ({})", c.code.text,
                        explain(clause_failures_[i], c.code, spec_.scope, point_), at(c.place))};
  }
  return {};
}

Point start_of(const GridSpec& spec, const Included& point) {
  Point out = spec.start;
  for (const auto& [slot, cell] : point.cells) {
    out.cells[slot] = cell;
    out.held[slot] = Presence::kValue;
  }
  for (const Slot slot : point.absent) out.held[slot] = Presence::kAbsent;
  return out;
}

Expected<ExpandCounts> expand(const Grid& grid, const std::function<bool(PlanEntry&&)>& sink,
                              std::uint64_t list_dropped) {
  if (grid.spec == nullptr) return fail("this grid was not read from a file; use read_file or read_text");
  const GridSpec& spec = *grid.spec;
  Expansion expansion{grid, sink, list_dropped, {}, {}, {}};
  static const std::vector<Dimension> kNoDimensions;
  for (const Included& point : spec.include) {
    const Walker::Setup setup{point.program,         point.given, kNoDimensions,
                              start_of(spec, point), false,       point.place};
    SWEEP_GET(const auto more, Walker(expansion, setup).run());
    if (!more) return expansion.counts;
  }
  if (!spec.dimensions.empty() || spec.base_only) {
    const Walker::Setup setup{spec.program, spec.given, spec.dimensions, spec.start, true, spec.grid_place};
    SWEEP_TRY(Walker(expansion, setup).run());
  }
  return expansion.counts;
}

}  // namespace sweep::grid
