// How numbers and text are shown to people: units scaled per column, three significant digits, text made safe
// to print. tables.h, best.h and heatmap.h decide what is shown.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "schema/values.h"

namespace sweep::answers {

// Three significant digits, never fewer digits than the integer part: 0.0123, 1.23, 12.3, 1234. Halves round
// up.
std::string significant(double value);
// The same with k, M, G, T, P from 1000 on: 12.3k.
std::string si(double value);
// 41 s, 3 min 20 s, 2 h 05 min, 3 d 4 h.
std::string duration(double seconds);
// The text of an estimate, which has no tenths: "less than 1 s", "4 s", "3 min 20 s".
std::string rough_duration(double seconds);
std::string rough_hours(double hours);  // "less than 0.01", "0.25", "12", two digits

// A share as "+1.2 %", "-0.4 %"; what rounds to zero has no sign.
std::string signed_percent(double share);

// How one column of numbers is shown: the stored value times `factor`, in `unit`, with an SI suffix or
// without.
struct Scale {
  double factor = 1;
  std::string unit;
  bool suffix = false;
  std::string operator()(double stored) const {
    return suffix ? si(stored * factor) : significant(stored * factor);
  }
};
// The scale for a column with this unit (fields.def) whose largest absolute value is `largest`.
Scale scale_for(std::string_view unit, double largest);

// A value as a cell; `-` for NULL. Text is made safe.
std::string show(const Value&, const Scale&);
// Unscaled: in the fewest digits that bring a number back; in six significant ones.
std::string show(const Value&);
std::string rounded(const Value&);

Value cell_of(const std::optional<double>&);  // NULL where it is not finite

using sweep::number;
using sweep::safe_text;
// safe_text line by line; line feeds stay.
std::string safe_lines(std::string_view);
std::size_t display_width(std::string_view utf8);             // terminal columns
std::string fit(std::string_view utf8, std::size_t columns);  // cut with an ellipsis when wider
std::string escape_xml(std::string_view);                     // safe_text, then & < > " ' as entities

// Digits compared as numbers: 1B < 8B < 80B; bs=2 < bs=16.
bool natural_less(std::string_view a, std::string_view b);
// NULL first, numbers by value, then text in natural order.
bool value_less(const Value& a, const Value& b);
// Lists of values by their first difference.
struct ValuesLess {
  bool operator()(const std::vector<Value>& a, const std::vector<Value>& b) const;
};

}  // namespace sweep::answers
