// Enumerators in SQL text: `State::kPending` in a statement of the store stands for the number that the
// enumerator has.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace sweep::store {

struct Enumerator {
  std::string_view name;  // its C++ name, with the enumeration's
  int number;
};
// Every enumerator of the enumerations that the database keeps as numbers.
std::span<const Enumerator> enumerators();

// The statement as SQLite gets it. The numbers are part of the text, not bound: SQLite uses a partial index
// only for a condition with the same constant, and a view takes no parameters. A name that is no enumerator
// stays, and SQLite refuses it as a syntax error.
std::string with_numbers(std::string_view sql);

// The outcomes that is_infrastructure() (schema/outcome.h) is true of, as the right side of IN.
std::string infrastructure_outcomes();

}  // namespace sweep::store
