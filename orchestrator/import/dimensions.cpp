#include "orchestrator/import/dimensions.h"

#include <fmt/format.h>

#include <cmath>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/import/cells.h"

namespace sweep::imports {
namespace {

// Other names of a model's dimensions; those of fields are the mapping's.
const std::map<std::string_view, std::string_view>& aliases() {
  static const std::map<std::string_view, std::string_view> known{
      {"num_layers", "layers"},  {"num_heads", "heads"},       {"num_kv_heads", "kv_heads"},
      {"hidden", "hidden_size"}, {"ffn", "intermediate_size"}, {"vocab", "vocab_size"}};
  return known;
}

const std::map<std::string_view, i64 ModelSpec::*>& dimensions() {
  static const std::map<std::string_view, i64 ModelSpec::*> known{
      {"layers", &ModelSpec::layers},
      {"hidden_size", &ModelSpec::hidden_size},
      {"heads", &ModelSpec::heads},
      {"kv_heads", &ModelSpec::kv_heads},
      {"head_dim", &ModelSpec::head_dim},
      {"intermediate_size", &ModelSpec::intermediate_size},
      {"vocab_size", &ModelSpec::vocab_size},
      {"experts", &ModelSpec::experts},
      {"experts_per_token", &ModelSpec::experts_per_token},
      {"max_positions", &ModelSpec::max_positions},
      {"family", nullptr},
      {"tie_embeddings", nullptr}};
  return known;
}

}  // namespace

std::optional<Dimension> find_dimension(std::string_view column) {
  const auto alias = aliases().find(column);
  const auto found = dimensions().find(alias == aliases().end() ? column : alias->second);
  if (found == dimensions().end()) return std::nullopt;
  return Dimension{found->first, found->second};
}

std::vector<std::string> number_dimensions() {
  std::vector<std::string> out;
  for (const auto& [name, number] : dimensions())
    if (number != nullptr) out.emplace_back(name);
  return out;
}

Expected<void> OwnDimensions::read(const Dimension& dimension, std::string_view cell) {
  if (dimension.number != nullptr) {
    const auto value = read_number(cell);
    if (!value) return tl::unexpected<Error>(value.error());
    if (*value < 0 || *value > 1e9)
      return fail(ErrorKind::kInvalidValue, cell, "'{}' is outside 0 .. 1000000000", cell);
    if (*value != std::floor(*value))
      return fail(ErrorKind::kInvalidValue, cell, "'{}' is not a whole number", cell);
    numbers_[dimension.name] = {dimension.number, static_cast<i64>(*value)};
    return {};
  }
  if (dimension.name == "family") {
    family_ = lower_case(cell);
    return {};
  }
  const auto flag = read_flag(cell);
  if (!flag) return tl::unexpected<Error>(flag.error());
  ties_ = *flag;
  return {};
}

// If the row states another family, only the row's own dimensions hold. What follows from a dimension that the row changes is
// derived again.
ModelSpec OwnDimensions::over(ModelSpec m) const {
  if (family_ && *family_ != m.family) m = ModelSpec{}, m.family = *family_;
  if (has("hidden_size") || has("heads")) m.head_dim = 0;
  if (has("heads") && m.kv_heads == m.heads) m.kv_heads = 0;
  for (const auto& [name, dimension] : numbers_) m.*(dimension.first) = dimension.second;
  if (ties_) m.tie_embeddings = *ties_;
  return m;
}

Expected<ModelSpec> OwnDimensions::model(const std::optional<ModelSpec>& named) const {
  if (named && empty()) return *named;
  auto spec = shape::completed(over(named.value_or(ModelSpec{})));
  if (spec) return spec;
  return tl::unexpected(
      retold(spec.error(), (named ? "the model: " : "a model of the row's own: ") + spec.error().message));
}

}  // namespace sweep::imports
