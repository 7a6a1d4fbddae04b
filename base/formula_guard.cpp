#include "base/formula_guard.h"

#include <charconv>
#include <cmath>

namespace sweep {

bool reads_as_number(std::string_view s) {
  if (s.starts_with('+')) s.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  return !s.empty() && error == std::errc{} && end == s.data() + s.size() && std::isfinite(value);
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
