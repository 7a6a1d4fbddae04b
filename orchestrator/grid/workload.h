// The section `workload` of a grid, checked: a program of the user's own that trains, as templates over the
// axes, and axes that only this program knows.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/grid/recipe_scope.h"
#include "orchestrator/grid/workload_text.h"
#include "schema/attempt.h"

namespace sweep::grid {

class CommandTemplates {
 public:
  explicit CommandTemplates(WorkloadText text) : text_(std::move(text)) {}
  const WorkloadText& text() const { return text_; }
  std::vector<OwnAxis>& axes() { return text_.axes; }
  const std::vector<OwnAxis>& axes() const { return text_.axes; }

  // Checks that every name in a template is an axis, a derived value, a number of steps or a rank's name.
  // Call it once the scope is complete.
  Status bind(const Scope&, const MeasurePlan&);
  // The slots whose values reach the program: in its words, variables, files and flags.
  const std::set<Slot>& used() const { return used_; }
  // Axes that reach it through other values of the grid.
  void also_reads(const std::vector<bool>& slots);
  // The axes that the program knows, as the labels of its trials have them (schema/labels.h).
  void know(std::string axes) { known_ = std::move(axes); }
  const std::string& known() const { return known_; }

  struct Rendered {
    // Names that only ranks know are left in. An argument that becomes empty is left out.
    CommandSpec command;
    // The flags alone, as they stand in the command: name, and the value where there is one.
    std::vector<std::pair<std::string, std::optional<std::string>>> flags;
    // Why the program cannot run this trial; and what it does otherwise than the trial says.
    std::vector<std::string> unsupported, notes;
  };
  // given: the slots that the grid sets; what the grid does not set is left to the program.
  Rendered render(const Scope&, const Point&, const Trial&, const std::vector<bool>& given) const;
  // Renders a trial that comes from no grid: every axis is given; what concerns the sweep alone (numbers of
  // steps, where output goes) is left out.
  Rendered render(const Trial&) const;

 private:
  struct BoundFile {
    std::string path;
    std::vector<Row> settings;
  };
  Status check_spelling(const Scope&) const;
  Status bind_words(RowBinder&) const;
  Status bind_files(RowBinder&);
  Status check_command() const;
  Rendered rendered(RowValues&) const;
  void refuse_unread(const Trial&, const std::vector<bool>* given, Rendered&) const;
  std::string file_text(const RowValues&, const FileText&, const std::vector<Row>& settings) const;

  WorkloadText text_;
  std::optional<RecipeScope> scope_;
  std::vector<Row> derived_, environment_, flags_;
  std::map<std::string, std::vector<Row>> settings_;  // rows of each file
  std::vector<Case> unsupported_, notes_;
  std::set<Slot> used_;
  std::set<Slot> read_;  // also by its notes, and through other values
  std::string known_;
};

}  // namespace sweep::grid
