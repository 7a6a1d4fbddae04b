// A first grid for a trainer that a user has: from a recipe, from a command line that works, or from a
// configuration file.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "base/expected.h"

namespace sweep::interop {

// The first grid of a recipe: one that is built in, or a file of the user's own.
Expected<std::string> first_grid_of_recipe(const std::string& recipe);

// Keeps the command. Options that are known become axes of sweep, other numbers become axes of the grid's
// own. Error: no program, or only a launcher.
Expected<std::string> first_grid_of_command(std::span<const std::string> words);

// A DeepSpeed JSON or a torchtitan TOML: the file stays, and what the recipe knows of it becomes axes.
Expected<std::string> first_grid_of_config(const std::filesystem::path& file);
bool is_config_file(const std::filesystem::path& file);

}  // namespace sweep::interop
