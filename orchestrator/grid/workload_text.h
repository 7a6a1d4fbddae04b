// WorkloadText: the section `workload` of a grid as it is written, with the recipe that it names laid under
// it.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/grid/config_text.h"
#include "orchestrator/grid/own_axes.h"
#include "orchestrator/grid/recipes.h"
#include "orchestrator/grid/rows.h"
#include "schema/command_spec.h"

namespace sweep::grid {

// A file of a command: a template, or settings laid over a tree.
struct FileText {
  std::string text;
  bool of_settings = false;
  ConfigFormat format = ConfigFormat::kJson;
  ConfigTree base;
  TableText settings;
};

// A text of the workload with the place that an error names.
struct PlacedText {
  std::string text;
  DocumentPtr document;
  Place place;
};

struct WorkloadText {
  // Words of the parts that no condition decides.
  std::vector<PlacedText> container, command, arguments;
  std::string prologue, script, folder;
  bool per_node = false, stop_after_steps = false;
  std::map<std::string, std::string> log_patterns;
  TableText environment, flags, derived;
  std::vector<CaseText> unsupported, notes;
  std::map<std::string, FileText> files;
  std::vector<OwnAxis> axes;
  RowValues::Spelling spelling;
  std::string recipe;  // the built-in one that it names; "": none
  // These describe a recipe: the trainer, the version whose parser was asked, the file that `best --for`
  // prints (empty: the command line), and a first grid.
  std::string trainer, checked, paste, first_grid;
  // The section itself.
  DocumentPtr document;
  Place place;
};

// Error: unknown keys, wrong types, files that cannot be read, with their place. folder: of the grid file.
Expected<WorkloadText> read_workload(const Document&, const Entry&, const std::filesystem::path& folder,
                                     const BuiltInRecipes&);
// A recipe alone. shown_as: the file that errors name.
Expected<WorkloadText> read_recipe(std::string_view yaml, const std::filesystem::path& shown_as,
                                   const BuiltInRecipes&);

}  // namespace sweep::grid
