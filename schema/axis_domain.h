// AxisDomain: the values that an axis may take. fields.def gives them; the grid reader, the plan's rules,
// imports, completion, the JSON Schema and the documents follow it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "schema/axis_choice.h"

namespace sweep {

struct AxisDomain {
  std::string_view key;
  // The range of a whole-number axis, both ends included.
  std::int64_t min = 0, max = 0;
  // The words of an axis with a list of values; else empty.
  std::span<const std::string_view> words = {};
};

namespace domain {
// The forms of a domain, as fields.def spells them; a choice has its words.
struct Any {};
struct Range {
  std::int64_t min, max;
};

constexpr Any any() {
  return {};
}
constexpr Range range(std::int64_t min, std::int64_t max) {
  return {min, max};
}

constexpr AxisDomain make(std::string_view key, const Any&) {
  return {key};
}
constexpr AxisDomain make(std::string_view key, const Range& range) {
  return {key, range.min, range.max};
}
template <AxisChoice Enum>
constexpr AxisDomain make_choice() {
  return {ChoiceWords<Enum>::kKey, 0, 0,
          std::span(ChoiceWords<Enum>::kWords).first(ChoiceWords<Enum>::kOpen)};
}

inline constexpr AxisDomain kAll[] = {
#define AXIS(type, key, def, domain, unit, title, sentence) make(#key, domain),
#define CHOICE(Enum, key, def, unit, title, sentence, ...) make_choice<Enum>(),
#include "schema/fields.def"
#undef CHOICE
#undef AXIS
};
}  // namespace domain

// Null for axes without a domain: hardware (its catalogue has the values) and flags.
constexpr const AxisDomain* axis_domain(std::string_view key) {
  for (const AxisDomain& d : domain::kAll) {
    if (d.key == key) return d.words.empty() && d.min == d.max ? nullptr : &d;
  }
  return nullptr;
}

// Whole-number axes that start at 1. A Trial holds 0 there when the grid pruned it before the value was
// resolved; everything people read (database, tables, pages) has NULL.
constexpr bool zero_is_unresolved(std::string_view key) {
  const AxisDomain* d = axis_domain(key);
  return d && d->words.empty() && d->min >= 1;
}

}  // namespace sweep
