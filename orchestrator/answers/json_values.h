// Members of JSON documents that are null where nothing is known.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sweep::answers {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
inline nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

}  // namespace sweep::answers
