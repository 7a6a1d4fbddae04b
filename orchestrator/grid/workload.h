// The section `workload` of a grid: a program of the user's own that trains, as templates over the axes, and axes that
// only this program knows.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/grid/document.h"
#include "orchestrator/grid/expression.h"
#include "orchestrator/grid/scope.h"
#include "schema/attempt.h"
#include "schema/command_spec.h"

namespace sweep::grid {

// An axis that the grid itself declares. It is one more column of the results, and part of the trial's id.
struct OwnAxis {
  std::string name;
  Type type = Type::kInt;
  // Its value where the grid gives none, as written; checked like any value.
  NodePtr preset;
  Place place;
  Slot slot = 0;
};

class CommandTemplates {
 public:
  // Texts with names in braces; nothing is filled in yet.
  CommandSpec command;
  std::vector<OwnAxis> axes;
  // Axis -> value -> what the program calls it. A value that is not listed keeps its own spelling.
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> spelling;
  Place place;

  // Checks that every name in a template is an axis, a derived value, a number of steps or a rank's name. Call it once
  // the scope is complete.
  Status bind(const Document&, const Scope&, const MeasurePlan&);
  // The command of one point, as JSON of a CommandSpec: the names that only ranks know are left in. An argument that
  // becomes empty is left out.
  std::string render(const Scope&, const Point&) const;

 private:
  // A name of the templates: a slot of the point, or a number that is the same for all trials.
  struct Source {
    std::optional<Slot> slot;
    std::string text;
  };
  std::map<std::string, Source, std::less<>> sources_;
};

// Error: unknown keys, wrong types, files that cannot be read, with their place. folder: of the grid file.
Expected<CommandTemplates> read_workload(const Document&, const Entry&, const std::filesystem::path& folder);

}  // namespace sweep::grid
