// Dimensions: columns that hold dimensions of the row's own model, and the model that they make of a named one.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::imports {

struct Dimension {
  std::string_view name;
  i64 ModelSpec::*number = nullptr;  // nullptr: family, tie_embeddings
};
// Finds a dimension by the column's name in lower case: its own, or an alias. nullopt: the column is none.
std::optional<Dimension> find_dimension(std::string_view column);
// The dimensions that are numbers.
std::vector<std::string> number_dimensions();

// The dimensions that a row states.
class OwnDimensions {
 public:
  Expected<void> read(const Dimension&, std::string_view cell);
  bool empty() const { return numbers_.empty() && !family_ && !ties_; }
  bool has(std::string_view dimension) const { return numbers_.contains(dimension); }
  // The named model with the row's dimensions; without a name, a model of the row's own.
  Expected<ModelSpec> model(const std::optional<ModelSpec>& named) const;

 private:
  ModelSpec over(ModelSpec) const;
  std::map<std::string_view, std::pair<i64 ModelSpec::*, i64>> numbers_;  // key: dimension
  std::optional<std::string> family_;
  std::optional<bool> ties_;
};

}  // namespace sweep::imports
