// The recipes that are built in: one folder each, with its recipe.yaml, in the language of a user's own
// recipe (docs/trainers.md#recipes).
#pragma once
#include <span>
#include <string_view>

#include "orchestrator/grid/recipes.h"

namespace sweep::interop {

struct RecipeText {
  std::string_view name, yaml;
};
// The texts of all built-in recipes, by name.
std::span<const RecipeText> recipe_texts();

// The built-in recipes, for readers of grids.
const grid::BuiltInRecipes& built_in_recipes();

}  // namespace sweep::interop
