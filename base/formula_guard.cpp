#include "base/formula_guard.h"

#include <cmath>

#include "base/number_in.h"

namespace sweep {

bool reads_as_number(std::string_view s) {
  if (s.starts_with('+')) s.remove_prefix(1);
  const auto value = number_in<double>(s);
  return value && std::isfinite(*value);
}

bool needs_guard(std::string_view text) {
  const auto first = text.find_first_not_of('\'');
  if (first == std::string_view::npos ||
      std::string_view("=+-@\t\r").find(text[first]) == std::string_view::npos)
    return false;
  return !reads_as_number(text.substr(first));
}

std::string guarded(std::string_view text) {
  return (needs_guard(text) ? "'" : "") + std::string(text);
}

std::string_view unguarded(std::string_view text) {
  return text.starts_with('\'') && needs_guard(text) ? text.substr(1) : text;
}

}  // namespace sweep
