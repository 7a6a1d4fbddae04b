#include "orchestrator/interop/recipes.h"

#include <algorithm>

namespace sweep::interop {

const grid::BuiltInRecipes& built_in_recipes() {
  static const grid::BuiltInRecipes all = [] {
    grid::BuiltInRecipes out;
    for (const RecipeText& recipe : recipe_texts()) out.names.emplace_back(recipe.name);
    out.find = [](std::string_view name) -> std::optional<std::string_view> {
      const auto found = std::ranges::find(recipe_texts(), name, &RecipeText::name);
      return found == recipe_texts().end() ? std::nullopt : std::optional(found->yaml);
    };
    return out;
  }();
  return all;
}

}  // namespace sweep::interop
