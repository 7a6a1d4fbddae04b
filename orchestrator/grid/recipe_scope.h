// The names that rows of a workload may use beside those of the grid: what a model is made of, the numbers of
// steps, and what follows from a trial's layout. A name that the grid has keeps the grid's meaning.
#pragma once
#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "orchestrator/grid/expression.h"
#include "orchestrator/grid/scope.h"
#include "schema/attempt.h"

namespace sweep::grid {

class RecipeScope {
 public:
  // script: the value of {script}; empty: there is no such name.
  RecipeScope(const Scope& of_grid, const MeasurePlan&, const std::string& script);
  Scope& scope() { return scope_; }
  const Scope& scope() const { return scope_; }
  // The axes that each added name follows from.
  const std::map<Slot, std::set<Slot>>& reads() const { return reads_; }
  // The names of one trial, added to its point.
  Point point_of(Point of_grid, const Trial&) const;

 private:
  void add(Type type, std::initializer_list<const char*> names, std::initializer_list<const char*> of_axes);
  void set(Point&, std::string_view name, Cell) const;

  Scope scope_;
  std::set<std::string, std::less<>> added_;
  std::map<Slot, std::set<Slot>> reads_;
  Point constants_;
};

// A trial that comes from no grid: the cells of its axes, its model and the model's dimensions. Words of it
// are added to the scope.
Point point_of(const Trial&, Scope&);

}  // namespace sweep::grid
