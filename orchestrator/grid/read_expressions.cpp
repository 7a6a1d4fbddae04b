// The sections of expressions: derive and where; and the order of the steps that a point takes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/expected.h"
#include "orchestrator/grid/own_axes.h"
#include "orchestrator/grid/reader.h"
#include "schema/axis_domain.h"

namespace sweep::grid {
namespace {

constexpr std::array<std::string_view, 13> kReservedNames{
    "and", "or", "not", "in", "min", "max", "ceil", "floor", "true", "false", "null", "trial", "sweep"};

bool is_label(std::string_view name) {
  if (name.empty() || name.size() > 64 || !((name[0] >= 'a' && name[0] <= 'z') || name[0] == '_'))
    return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

// A point of the grid may be on hardware without GPUs.
bool main_has_cpu(const GridSpec& spec) {
  const Slot hardware = spec.scope.slot("hardware");
  for (const Dimension& d : spec.dimensions) {
    const auto at = std::find(d.slots.begin(), d.slots.end(), hardware);
    if (at == d.slots.end()) continue;
    for (std::size_t row = 0; row < d.count; ++row) {
      if (spec.catalogue_gpus(
              d.cells[row * d.slots.size() + static_cast<std::size_t>(at - d.slots.begin())].i) == 0)
        return true;
    }
    return false;
  }
  return spec.catalogue_gpus(spec.start.cells[hardware].i) == 0;
}

}  // namespace

Status ExpressionSections::add_labels() {
  const Entry* entry = in_.section("derive");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_map(in_.document, *entry->value, entry->place, "derive"));
  if (entry->value->entries.size() > kMaxClauses)
    return in_.document.refuse(entry->place, {ErrorKind::kInvalidValue, "derive"},
                               "derive has more than {} entries", kMaxClauses);
  for (const Entry& item : entry->value->entries) {
    auto slot = in_.spec.scope.find(item.key);
    if (slot && (*slot >= in_.spec.scope.axis_count() || in_.spec.scope.at(*slot).type == Type::kText)) {
      return in_.document.refuse(
          item.place, {ErrorKind::kUnsupported, item.key},
          "derive cannot set '{}'; it sets axes that are numbers or flags, and new names", item.key);
    }
    if (!slot && (!is_label(item.key) || std::find(kReservedNames.begin(), kReservedNames.end(), item.key) !=
                                             kReservedNames.end())) {
      return in_.document.refuse(item.place, {ErrorKind::kInvalidValue, item.key},
                                 "'{}' cannot name a derived value; take lower-case letters, digits and '_', "
                                 "and no word of the expressions",
                                 item.key);
    }
    if (!slot && is_name_of_sweep(item.key))
      return in_.document.refuse(item.place, {ErrorKind::kInvalidValue, item.key},
                                 "'{}' is a column of the results; give the derived value another name",
                                 item.key);
    if (!slot) slot = in_.spec.scope.add_label(item.key);
    Derived derived{in_.spec.scope.at(*slot).name, *slot, {}, item.place};
    if (const AxisDomain* domain = axis_domain(derived.name)) {
      derived.min = domain->min;
      derived.max = domain->max;
    }
    in_.spec.derived.push_back(std::move(derived));
  }
  return {};
}

tl::unexpected<Error> ExpressionSections::refuse_expression(const Node& node,
                                                            const ExpressionError& error) const {
  return in_.document.refuse(
      in_.document.place_in(node, error.at), {error.kind, error.subject}, "{} (in \"{}\")", error.message,
      node.text.size() <= 200 ? node.text : node.text.substr(0, error.at < 200 ? 200 : 0) + "...");
}

Status ExpressionSections::derive() {
  const Entry* entry = in_.section("derive");
  std::vector<std::vector<Slot>> reads(in_.spec.derived.size());
  for (std::size_t i = 0; i < in_.spec.derived.size(); ++i) {
    const Node& node = *entry->value->entries[i].value;
    if (!node.is_scalar())
      return in_.document.refuse(node.place, {ErrorKind::kInvalidValue, in_.spec.derived[i].name},
                                 "{} takes an expression, not {}", in_.spec.derived[i].name,
                                 node.kind_name());
    for (const std::string& name : names_in(node.text)) {
      if (const auto slot = in_.spec.scope.find(name)) reads[i].push_back(*slot);
    }
  }
  auto program = order_steps(in_.spec, in_.spec.given, main_has_cpu(in_.spec), reads);
  if (!program) return refuse_cycle(program.error());
  in_.spec.program = std::move(*program);
  for (const Step& step : in_.spec.program) {
    if (!step.relation)
      SWEEP_TRY(compile_derived(in_.spec.derived[step.derived], *entry->value->entries[step.derived].value));
  }
  return {};
}

tl::unexpected<Error> ExpressionSections::refuse_cycle(const Cycle& cycle) const {
  return in_.document.refuse(in_.spec.derived[cycle.derived].place,
                             {ErrorKind::kInvalidValue, in_.spec.derived[cycle.derived].name},
                             "derive has a cycle: {}; give one of them a value", cycle.path);
}

Status ExpressionSections::compile_derived(Derived& derived, const Node& node) {
  auto code = parse(node.text, in_.spec.scope);
  if (!code) return refuse_expression(node, code.error());
  SWEEP_TRY(check_reads(*code, node));
  const Symbol& symbol = in_.spec.scope.at(derived.slot);
  if (symbol.origin == Origin::kLabel) {
    in_.spec.scope.set_type(derived.slot, code->type());
  } else if (symbol.type != code->type()) {
    return in_.document.refuse(node.place, {ErrorKind::kInvalidValue, derived.name},
                               "{} is {}, but the expression gives {}{}", derived.name,
                               type_name(symbol.type), type_name(code->type()),
                               code->type() == Type::kReal ? "; use floor() or ceil()" : "");
  }
  derived.code = std::move(*code);
  return {};
}

Status ExpressionSections::check_reads(const Expression& code, const Node& node) const {
  for (const Slot slot : code.reads) {
    if (!in_.spec.scope.at(slot).optional || in_.spec.given[slot]) continue;
    const std::size_t at = code.text.find(in_.spec.scope.at(slot).name);
    return in_.document.refuse(
        in_.document.place_in(node, at), {ErrorKind::kMissing, in_.spec.scope.at(slot).name},
        "'{0}' has no value in this grid; set it under base, as in 'base: {{{0}: 1000000}}'",
        in_.spec.scope.at(slot).name);
  }
  return {};
}

Status ExpressionSections::where() {
  const Entry* entry = in_.section("where");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(in_.document, *entry->value, "where"));
  if (entry->value->items.size() > kMaxClauses)
    return in_.document.refuse(entry->place, {ErrorKind::kInvalidValue, "where"},
                               "where has more than {} clauses", kMaxClauses);
  for (const NodePtr& item : entry->value->items) {
    if (!item->is_scalar())
      return in_.document.refuse(item->place, {ErrorKind::kInvalidValue, "where"},
                                 "a clause of where is an expression, not {}; write it in quotes",
                                 item->kind_name());
    auto code = parse(item->text, in_.spec.scope);
    if (!code) return refuse_expression(*item, code.error());
    if (code->type() != Type::kBool)
      return in_.document.refuse(in_.document.place_in(*item, 0), {ErrorKind::kInvalidValue, item->text},
                                 "\"{}\" is {}, not a condition; compare it with something", item->text,
                                 type_name(code->type()));
    SWEEP_TRY(check_reads(*code, *item));
    in_.spec.where.push_back({std::move(*code), in_.document.place_in(*item, 0)});
  }
  return {};
}

Status ExpressionSections::order_included() {
  std::vector<std::vector<Slot>> reads;
  for (const Derived& derived : in_.spec.derived) reads.push_back(derived.code.reads);
  const Slot hardware = in_.spec.scope.slot("hardware");
  for (Included& point : in_.spec.include) {
    i64 word = in_.spec.start.cells[hardware].i;
    for (const auto& [slot, cell] : point.cells) word = slot == hardware ? cell.i : word;
    auto program = order_steps(in_.spec, point.given, in_.spec.catalogue_gpus(word) == 0, reads);
    if (!program) return refuse_cycle(program.error());
    point.program = std::move(*program);
  }
  return {};
}

}  // namespace sweep::grid
