// Reading a number that a text is as a whole.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace sweep {

// nullopt: the text is no number, something stands before or after it, or it is out of range.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace sweep
