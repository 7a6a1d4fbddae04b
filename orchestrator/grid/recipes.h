// The recipes that grids may name: whoever reads grids brings them along (orchestrator/interop).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sweep::grid {

// The text of a recipe that is built in; none: there is no such recipe.
struct BuiltInRecipes {
  std::function<std::optional<std::string_view>(std::string_view name)> find;
  std::vector<std::string> names;
};

}  // namespace sweep::grid
