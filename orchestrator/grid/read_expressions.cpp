// The sections of expressions: derive and where.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/expected.h"
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

}  // namespace

Status Reader::add_labels() {
  const Entry* entry = section("derive");
  if (entry == nullptr) return grow();
  SWEEP_TRY(need_map(document_, *entry->value, entry->place, "derive"));
  if (entry->value->entries.size() > kMaxClauses)
    return refuse(entry->place, fmt::format("derive has more than {} entries", kMaxClauses));
  for (const Entry& item : entry->value->entries) {
    auto slot = spec_.scope.find(item.key);
    if (slot && (*slot >= spec_.scope.axis_count() || spec_.scope.at(*slot).type == Type::kText)) {
      return refuse(
          item.place,
          fmt::format("derive cannot set '{}'; it sets axes that are numbers or flags, and new names",
                      item.key));
    }
    if (!slot && (!is_label(item.key) || std::find(kReservedNames.begin(), kReservedNames.end(), item.key) !=
                                             kReservedNames.end())) {
      return refuse(item.place, fmt::format("'{}' cannot name a derived value; take lower-case letters, "
                                            "digits and '_', and no word of the expressions",
                                            item.key));
    }
    if (!slot) slot = spec_.scope.add_label(item.key);
    Derived derived{spec_.scope.at(*slot).name, *slot, {}, item.place};
    if (const AxisDomain* domain = axis_domain(derived.name))
      derived.min = domain->min, derived.max = domain->max;
    spec_.derived.push_back(std::move(derived));
  }
  return grow();
}

tl::unexpected<Error> Reader::refuse_expression(const Node& node, const ExpressionError& error) const {
  return refuse(document_.place_in(node, error.at),
                fmt::format("{} (in \"{}\")", error.message,
                            node.text.size() <= 200 ? node.text
                                                    : node.text.substr(0, error.at < 200 ? 200 : 0) + "..."));
}

Status Reader::derive() {
  const Entry* entry = section("derive");
  std::vector<std::vector<Slot>> reads(spec_.derived.size());
  for (std::size_t i = 0; i < spec_.derived.size(); ++i) {
    const Node& node = *entry->value->entries[i].value;
    if (!node.is_scalar())
      return refuse(node.place,
                    fmt::format("{} takes an expression, not {}", spec_.derived[i].name, node.kind_name()));
    for (const std::string& name : names_in(node.text)) {
      if (const auto slot = spec_.scope.find(name)) reads[i].push_back(*slot);
    }
  }
  auto program = order_steps(spec_, spec_.given, main_has_cpu(), reads);
  if (!program) return refuse_cycle(program.error());
  spec_.program = std::move(*program);
  for (const Step& step : spec_.program) {
    if (step.kind == Step::Kind::kDerived)
      SWEEP_TRY(compile_derived(spec_.derived[step.derived], *entry->value->entries[step.derived].value));
  }
  return {};
}

tl::unexpected<Error> Reader::refuse_cycle(const Cycle& cycle) const {
  return refuse(spec_.derived[cycle.derived].place,
                fmt::format("derive goes in a circle: {}; give one of them a value", cycle.path));
}

Status Reader::compile_derived(Derived& derived, const Node& node) {
  auto code = compile(node.text, spec_.scope);
  if (!code) return refuse_expression(node, code.error());
  SWEEP_TRY(check_reads(*code, node));
  const Symbol& symbol = spec_.scope.at(derived.slot);
  if (symbol.origin == Origin::kLabel) {
    spec_.scope.set_type(derived.slot, code->type);
  } else if (symbol.type != code->type) {
    return refuse(node.place, fmt::format("{} is {}, but the expression gives {}{}", derived.name,
                                          type_name(symbol.type), type_name(code->type),
                                          code->type == Type::kReal ? "; use floor() or ceil()" : ""));
  }
  derived.code = std::move(*code);
  return {};
}

Status Reader::check_reads(const Code& code, const Node& node) const {
  for (const Slot slot : code.reads) {
    if (!spec_.scope.at(slot).optional || spec_.given[slot]) continue;
    const std::size_t at = code.text.find(spec_.scope.at(slot).name);
    return refuse(
        document_.place_in(node, at),
        fmt::format("'{0}' has no value in this grid; set it under base, as in 'base: {{{0}: 1000000}}'",
                    spec_.scope.at(slot).name));
  }
  return {};
}

Status Reader::where() {
  const Entry* entry = section("where");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_list(document_, *entry->value, "where"));
  if (entry->value->items.size() > kMaxClauses)
    return refuse(entry->place, fmt::format("where has more than {} clauses", kMaxClauses));
  for (const NodePtr& item : entry->value->items) {
    if (!item->is_scalar())
      return refuse(item->place, fmt::format("a clause of where is an expression, not {}; write it in quotes",
                                             item->kind_name()));
    auto code = compile(item->text, spec_.scope);
    if (!code) return refuse_expression(*item, code.error());
    if (code->type != Type::kBool)
      return refuse(document_.place_in(*item, 0),
                    fmt::format("\"{}\" is {}, not a condition; compare it with something", item->text,
                                type_name(code->type)));
    SWEEP_TRY(check_reads(*code, *item));
    spec_.where.push_back({std::move(*code), document_.place_in(*item, 0)});
  }
  return {};
}

}  // namespace sweep::grid
