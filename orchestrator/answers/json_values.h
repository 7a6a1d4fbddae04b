// Members of JSON documents that are null where nothing is known, and documents inside of a page.
#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sweep::answers {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
inline nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}
// The text of a JSON document as it may stand in a <script>: no `</script>` and no `<!--` survives.
inline std::string inside_script(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", int(c));
    else
      out += c;
  }
  return out;
}

}  // namespace sweep::answers
