// The model catalogue, models.json: dimensions as published in each model's config.json, without what the family implies.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/catalogue_text.h"
#include "schema/codec.h"

namespace sweep::shape {
namespace {

std::vector<NamedModel> build_models() {
  std::vector<NamedModel> v;
  for (const auto& entry : nlohmann::json::parse(model_texts().front().json)) {
    const std::string name = entry.at("name");
    const auto spec = from_json<ModelSpec>(entry).and_then(completed);
    if (!spec) throw std::logic_error(name + ": " + spec.error().message);
    v.push_back({name, *spec, entry.at("source")});
  }
  return v;
}

}  // namespace

std::span<const NamedModel> all_models() {
  static const std::vector<NamedModel> models = build_models();
  return models;
}

Expected<ModelSpec> find_model(std::string_view name) {
  for (const NamedModel& m : all_models())
    if (m.name == name) return m.spec;
  std::vector<std::string> names;
  for (const NamedModel& m : all_models()) names.push_back(m.name);
  const auto close = nearest(name, names);
  return fail(ErrorKind::kUnknownName, name,
              "unknown model '{}'{}; known: {}. Another model: {{config_json: PATH}} or its dimensions", name,
              close ? fmt::format(" (did you mean '{}'?)", *close) : "", fmt::join(names, ", "));
}

}  // namespace sweep::shape
