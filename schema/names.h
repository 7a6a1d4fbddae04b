// The words of an enum's values, as a table that is read both ways.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace sweep {

template <class E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

// "?" for a value that the table lacks.
template <class E, std::size_t N>
constexpr std::string_view name_of(const Names<E, N>& names, E value) {
  for (const auto& [each, name] : names)
    if (each == value) return name;
  return "?";
}

template <class E, std::size_t N>
constexpr std::optional<E> value_of(const Names<E, N>& names, std::string_view word) {
  for (const auto& [each, name] : names)
    if (name == word) return each;
  return std::nullopt;
}

}  // namespace sweep
