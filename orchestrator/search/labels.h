// Labels of a trial by name: axes of its workload, and what the grid derives.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "schema/trial.h"

namespace sweep::search {

using Labels = std::map<std::string, nlohmann::json>;

inline Labels labels_of(const Trial& t) {
  const auto json = nlohmann::json::parse(t.labels, nullptr, false);
  return json.is_object() ? json.get<Labels>() : Labels();
}

}  // namespace sweep::search
