// Reading a number that a text is as a whole.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace sweep {

// nullopt: the text is no number, something stands before or after it, or it is out of range.
// base: that of a whole number, 10 if it is left out.
template <class T, class... Base>
std::optional<T> number_in(std::string_view text, Base... base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace sweep
