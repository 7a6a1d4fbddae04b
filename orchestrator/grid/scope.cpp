#include "orchestrator/grid/scope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "schema/axis_domain.h"
#include "schema/hardware_kinds.h"

namespace sweep::grid {

std::string_view type_name(Type type) {
  constexpr std::string_view kNames[] = {"a whole number", "a number", "true or false", "a word"};
  return kNames[static_cast<std::size_t>(type)];
}

i64 Words::id(std::string_view word) {
  const auto [it, fresh] = ids_.emplace(std::string(word), static_cast<i64>(words_.size()));
  if (fresh) words_.emplace_back(word);
  return it->second;
}

std::optional<i64> Words::find(std::string_view word) const {
  const auto it = ids_.find(word);
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<std::pair<std::string_view, i64>> dimensions_of(const ModelSpec& m) {
  return {{"layers", m.layers},         {"hidden_size", m.hidden_size},
          {"heads", m.heads},           {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},     {"intermediate_size", m.intermediate_size},
          {"vocab_size", m.vocab_size}, {"params", m.layers > 0 ? shape::parameter_count(m) : 0}};
}

bool takes(const Symbol& symbol, const std::string& word) {
  return symbol.values.empty() || std::ranges::find(symbol.values, word) != symbol.values.end() ||
         (symbol.name == "hardware" && is_mixed(word) && shape::known_hardware(word) != nullptr);
}

Scope::Scope() {
  Trial trial;
  for_each_axis(trial, [&](const FieldInfo& info, const auto&, auto&) {
    Symbol symbol{std::string(info.key), Type::kInt, Origin::kAxis, info.type == "opt_i64", {}};
    if (info.type == "text") symbol.type = Type::kText;
    if (info.type == "flag") symbol.type = Type::kBool;
    if (info.type == "f64") symbol.type = Type::kReal;
    if (const AxisDomain* domain = axis_domain(info.key)) {
      symbol.values.assign(domain->words.begin(), domain->words.end());
    }
    if (info.key == "hardware") {
      for (const auto& hardware : shape::all_hardware()) symbol.values.push_back(hardware.name);
    }
    symbols_.push_back(std::move(symbol));
  });
  axis_count_ = symbols_.size();
  symbols_.push_back({"model", Type::kText, Origin::kModel, false, {}});
  for (const auto& [name, value] : dimensions_of({})) {
    symbols_.push_back({std::string(name), Type::kInt, Origin::kDimension, false, {}});
  }
  symbols_.push_back({"world", Type::kInt, Origin::kWorld, false, {}});
  for (std::size_t i = 0; i < symbols_.size(); ++i) slots_[symbols_[i].name] = static_cast<Slot>(i);
}

std::optional<Slot> Scope::find(std::string_view name) const {
  const auto it = slots_.find(name);
  return it == slots_.end() ? std::nullopt : std::optional(it->second);
}

Slot Scope::slot(std::string_view name) const {
  return slots_.find(name)->second;
}

Slot Scope::add_label(std::string name) {
  const auto slot = static_cast<Slot>(symbols_.size());
  slots_[name] = slot;
  symbols_.push_back({std::move(name), Type::kInt, Origin::kLabel, false, {}});
  return slot;
}

bool Scope::is_axis(Slot slot) const {
  const Symbol& symbol = symbols_[slot];
  if (symbol.name == "workload" || symbol.name == "program")
    return false;  // the section `workload` sets them
  return slot <= axis_count_ || symbol.origin == Origin::kOwn;
}

Slot Scope::add_own_axis(std::string name, Type type) {
  const Slot slot = add_label(std::move(name));
  symbols_[slot].type = type;
  symbols_[slot].origin = Origin::kOwn;
  return slot;
}

std::vector<std::string> Scope::axis_names() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < symbols_.size(); ++i)
    if (is_axis(static_cast<Slot>(i))) out.push_back(symbols_[i].name);
  return out;
}

std::vector<std::string> Scope::names() const {
  std::vector<std::string> out;
  for (const Symbol& symbol : symbols_) out.push_back(symbol.name);
  return out;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto near = shape::nearest(word, candidates)) return fmt::format("; did you mean '{}'?", *near);
  return fmt::format("; use one of: {}", fmt::join(candidates, ", "));
}

}  // namespace sweep::grid
