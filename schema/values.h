// The value of a result as a number and as JSON.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "schema/result_row.h"

namespace sweep {

// The number of an i64 or a double.
inline std::optional<double> number(const Value& value) {
  if (const auto* v = std::get_if<double>(&value)) return *v;
  if (const auto* v = std::get_if<i64>(&value)) return static_cast<double>(*v);
  return std::nullopt;
}

// null for NULL and for a number that is not finite. `flag`: an i64 is true or false.
template <class Json = nlohmann::json>
Json value_json(const Value& value, bool flag = false) {
  if (const auto* v = std::get_if<i64>(&value)) return flag ? Json(*v != 0) : Json(*v);
  if (const auto* v = std::get_if<double>(&value)) return std::isfinite(*v) ? Json(*v) : Json(nullptr);
  if (const auto* v = std::get_if<std::string>(&value)) return *v;
  return nullptr;
}

}  // namespace sweep
