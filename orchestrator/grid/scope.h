// Scope: every name an expression may use, its type, and its slot in a Point: the axes of fields.def, `model`
// and its dimensions, `world`, and the labels that `derive` adds. Owns names and interned words; holds no
// values.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/model_spec.h"
#include "schema/trial.h"

namespace sweep::grid {

using Slot = std::uint16_t;

enum class Type : std::uint8_t { kInt, kReal, kBool, kText };
std::string_view type_name(Type);  // "a whole number", ...

// A value: a whole number, a flag (0 or 1), a word (its id in Words), or a real number. The type lives beside
// it.
union Cell {
  i64 i;
  double r;
};

// Words <-> small ids, so that comparing words is comparing numbers.
class Words {
 public:
  i64 id(std::string_view word);
  std::optional<i64> find(std::string_view word) const;
  const std::string& at(i64 id) const { return words_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return words_.size(); }

 private:
  std::vector<std::string> words_;
  std::map<std::string, i64, std::less<>> ids_;
};

// kOwn: an axis that the grid declares (workload.axes).
enum class Origin : std::uint8_t { kAxis, kModel, kDimension, kWorld, kLabel, kOwn };

struct Symbol {
  std::string name;
  Type type = Type::kInt;
  Origin origin = Origin::kAxis;
  bool optional = false;            // may be absent in a trial (opt_i64)
  std::vector<std::string> values;  // a word's closed list (hardware: its catalogue); empty: any
};

// Whether the axis may be this word.
bool takes(const Symbol&, const std::string& word);

class Scope {
 public:
  Scope();  // the axes in table order, then model, its dimensions, world
  const Symbol& at(Slot slot) const { return symbols_[slot]; }
  std::optional<Slot> find(std::string_view name) const;
  Slot slot(std::string_view name) const;  // REQUIRES: find(name)
  Slot add_label(std::string name);
  Slot add_own_axis(std::string name, Type type);
  // A name of base, grid, zip, include and exclude.
  bool is_axis(Slot slot) const;
  void set_type(Slot slot, Type type) { symbols_[slot].type = type; }
  void set_values(Slot slot, std::vector<std::string> values) { symbols_[slot].values = std::move(values); }
  std::size_t size() const { return symbols_.size(); }
  std::size_t axis_count() const { return axis_count_; }
  std::vector<std::string> axis_names() const;  // names that grid, base, zip, ... take: the axes and `model`
  std::vector<std::string> names() const;

  Words words;

 private:
  std::vector<Symbol> symbols_;
  std::map<std::string, Slot, std::less<>> slots_;
  std::size_t axis_count_ = 0;
};

// The model's dimensions as (name, value), in the order of their slots.
std::vector<std::pair<std::string_view, i64>> dimensions_of(const ModelSpec&);

// "; did you mean 'x'?" for the nearest candidate, else "; one of a, b, c".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace sweep::grid
