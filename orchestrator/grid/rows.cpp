#include "orchestrator/grid/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "base/template.h"
#include "schema/command_spec.h"

namespace sweep::grid {
namespace {

bool may_be_derived(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
         std::ranges::all_of(
             name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

bool is_rank_name(std::string_view name) {
  return std::ranges::find(kRankNames, name) != kRankNames.end();
}

std::string plain_text(Cell cell, Type type, const Words& words) {
  if (type == Type::kText) return words.at(cell.i);
  return type == Type::kReal ? fmt::format("{}", cell.r) : value_text(cell, type, words);
}

Expected<std::vector<std::string>> RowBinder::names_of(std::string_view text) const {
  SWEEP_GET(auto names, templates::names_in(text));
  for (const std::string& name : names) {
    if (scope_.find(name) || is_rank_name(name)) continue;
    auto known = scope_.names();
    known.insert(known.end(), kRankNames.begin(), kRankNames.end());
    return fail(ErrorKind::kUnknownName, name,
                "workload: {{{}}} is neither an axis nor a name that a command knows{}", name,
                suggestion(name, known));
  }
  return names;
}

Expected<std::vector<std::string>> RowBinder::use(std::string_view text) {
  SWEEP_GET(auto names, names_of(text));
  for (const std::string& name : names)
    if (const auto slot = scope_.find(name)) trace(*slot, used_);
  return names;
}

Expected<Expression> RowBinder::compiled(const CaseText& at, const Node& node) {
  auto code = parse(node.text, scope_);
  if (code) return std::move(*code);
  return at.document->refuse(at.document->place_in(node, code.error().at),
                             {code.error().kind, code.error().subject}, "{} (in \"{}\")",
                             code.error().message, node.text.substr(0, 200));
}

// The axes behind a name: those that derived names read, and the model for its dimensions.
void RowBinder::trace(Slot slot, std::set<Slot>& axes) const {
  if (const auto derived = reads_.find(slot); derived != reads_.end()) {
    axes.insert(derived->second.begin(), derived->second.end());
    return;
  }
  const Origin origin = scope_.at(slot).origin;
  if (origin == Origin::kDimension) axes.insert(scope_.slot("model"));
  if (origin != Origin::kDimension && origin != Origin::kWorld) axes.insert(slot);
}

Status RowBinder::add_axes(const CaseText& from, const std::set<Slot>& read, Case& to) const {
  to.of_any = false;
  if (!from.of) {
    to.of.assign(read.begin(), read.end());
    to.of_any = to.of_sweep = read.empty();
    return {};
  }
  to.of_any = from.of->empty();
  for (const std::string& name : *from.of) {
    const auto slot = scope_.find(name);
    if (!slot)
      return from.document->refuse(from.place, {ErrorKind::kUnknownName, name}, "of: '{}' is not an axis{}",
                                   name, suggestion(name, scope_.axis_names()));
    to.of.push_back(*slot);
  }
  return {};
}

Expected<Case> RowBinder::bind(const CaseText& from) {
  Case out;
  std::set<Slot> in_value, in_when;
  if (from.when) {
    SWEEP_GET(auto code, compiled(from, *from.when));
    if (code.type() != Type::kBool)
      return from.document->refuse(from.when->place, {ErrorKind::kInvalidValue, from.when->text},
                                   "\"{}\" is {}, not a condition; compare it with something",
                                   from.when->text, type_name(code.type()));
    for (const Slot slot : code.reads) trace(slot, in_when);
    out.when = std::move(code);
  }
  if (from.value) {
    const auto names = names_of(from.value->text);
    if (!names) return from.document->refuse(from.value->place, names.error());
    for (const std::string& name : *names)
      if (const auto slot = scope_.find(name)) trace(*slot, in_value);
    out.text = from.value->text;
  }
  used_.insert(in_when.begin(), in_when.end());
  used_.insert(in_value.begin(), in_value.end());
  SWEEP_TRY(add_axes(from, in_value.empty() ? in_when : in_value, out));
  return out;
}

Expected<std::vector<Row>> RowBinder::table(const TableText& from) {
  std::vector<Row> out;
  for (const RowText& row : from) {
    SWEEP_GET(auto cases, sentences(row.cases));
    out.push_back({row.key, std::move(cases), 0});
  }
  return out;
}

Expected<std::vector<Case>> RowBinder::sentences(const std::vector<CaseText>& from) {
  std::vector<Case> out;
  for (const CaseText& each : from) {
    SWEEP_GET(auto one, bind(each));
    out.push_back(std::move(one));
  }
  return out;
}

Expected<std::vector<Row>> RowBinder::derived(const TableText& from) {
  std::vector<Row> out;
  const std::set<Slot> before = used_;  // a derived value is in use where another row reads it
  for (const RowText& row : from) {
    if (row.cases.empty()) continue;
    const CaseText& first = row.cases.front();
    if (!may_be_derived(row.key) || is_rank_name(row.key))
      return first.document->refuse(
          first.place, {ErrorKind::kInvalidValue, row.key},
          "'{}' cannot name a derived value; take lower-case letters, digits and '_'", row.key);
    if (scope_.find(row.key))
      return first.document->refuse(first.place, {ErrorKind::kConflict, row.key},
                                    "'{}' is a name already; derive another one", row.key);
    Row made{row.key, {}, 0};
    std::set<Slot> reads;
    std::optional<Type> type;
    for (const CaseText& each : row.cases) {
      if (!each.value)
        return each.document->refuse(each.place, {ErrorKind::kMissing, "value"},
                                     "{} has a case without a value", row.key);
      SWEEP_GET(auto value, compiled(each, *each.value));
      if (type && *type != value.type())
        return each.document->refuse(each.value->place, {ErrorKind::kInvalidValue, row.key},
                                     "{} is {} here, and {} in the case before", row.key,
                                     type_name(value.type()), type_name(*type));
      type = value.type();
      CaseText condition = each;
      condition.value = nullptr;
      SWEEP_GET(auto bound, bind(condition));
      for (const Slot slot : value.reads) trace(slot, reads);
      if (bound.when)
        for (const Slot slot : bound.when->reads) trace(slot, reads);
      bound.value = std::move(value);
      bound.of_any = true;  // a value is there whatever the grid gives
      made.cases.push_back(std::move(bound));
    }
    made.slot = scope_.add_label(row.key);
    scope_.set_type(made.slot, *type);
    reads_[made.slot] = std::move(reads);
    out.push_back(std::move(made));
  }
  used_ = before;
  return out;
}

bool RowValues::holds(const Case& one) const {
  const auto is_given = [&](Slot slot) { return slot >= given_->size() || (*given_)[slot]; };
  if (given_ != nullptr && !one.of_any && std::ranges::none_of(one.of, is_given)) return false;
  if (!one.when) return true;
  Cell value{0};
  Failure failure;
  return evaluate(*one.when, point_, value, failure) && value.i != 0;
}

void RowValues::derive(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    point_.held[row.slot] = Presence::kAbsent;
    for (const Case& one : row.cases) {
      if (!holds(one)) continue;
      Failure failure;
      if (evaluate(*one.value, point_, point_.cells[row.slot], failure))
        point_.held[row.slot] = Presence::kValue;
      break;
    }
  }
}

const Case* RowValues::chosen(const Row& row) const {
  for (const Case& one : row.cases)
    if (holds(one) && !(given_ == nullptr && one.of_sweep) && (!one.text || filled(*one.text))) return &one;
  return nullptr;
}

std::optional<std::string> RowValues::value_of(std::string_view name) const {
  const auto slot = scope_.find(name);
  if (!slot || point_.held[*slot] != Presence::kValue) return std::nullopt;
  std::string value = plain_text(point_.cells[*slot], scope_.at(*slot).type, scope_.words);
  if (spelling_ == nullptr) return value;
  const auto spelt = spelling_->find(name);
  if (spelt == spelling_->end()) return value;
  const auto other = spelt->second.find(value);
  return other == spelt->second.end() ? value : other->second;
}

std::optional<std::string> RowValues::filled(std::string_view text) const {
  bool whole = true;
  auto out = templates::fill(text, [&](std::string_view name) {
    auto value = value_of(name);
    whole = whole && (value || is_rank_name(name));
    return value;
  });
  if (!out || !whole) return std::nullopt;
  return std::move(*out);
}

std::string RowValues::lenient(std::string_view text) const {
  const auto out = templates::fill(text, [&](std::string_view name) -> std::optional<std::string> {
    if (auto value = value_of(name)) return value;
    return is_rank_name(name) && !scope_.find(name) ? std::nullopt : std::optional<std::string>("");
  });
  return out.value_or(std::string(text));
}

}  // namespace sweep::grid
