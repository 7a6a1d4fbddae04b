// Hugging Face config.json -> ModelSpec. families/ knows the keys of each family.
#include <algorithm>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape {
namespace {

constexpr std::size_t kMaxBytes = 1u << 20;
constexpr int kMaxDepth = 32;

// The family by model_type, or by the architecture's name where model_type is absent.
const Family* family_in(ConfigReader& r) {
  if (const auto type = r.word("model_type")) {
    if (const Family* family = find_family(*type)) return family;
    r.refuse(ErrorKind::kUnsupported, "model_type",
             fmt::format("model_type '{}' is not supported; supported: {}", clipped(*type), family_names()));
    return nullptr;
  }
  const auto* names = r.find("architectures");
  if (names && names->is_array() && !names->empty() && names->front().is_string()) {
    const auto name = names->front().get<std::string>();
    for (const Family* family : all_families())
      if (family->architecture == name) return family;
    r.refuse(ErrorKind::kUnsupported, "architectures",
             fmt::format("architecture '{}' is not supported", clipped(name)));
  }
  r.refuse(ErrorKind::kMissing, "model_type", "it has no 'model_type'");
  return nullptr;
}

// The text's part of a model of text and images that a family knows.
const nlohmann::json& text_part(const nlohmann::json& whole) {
  const auto type = whole.find("model_type"), text = whole.find("text_config");
  if (type == whole.end() || text == whole.end() || !type->is_string() || !text->is_object()) return whole;
  const auto known = [&](const Family* family) {
    return !family->with_images.empty() && family->with_images == type->get_ref<const std::string&>();
  };
  return std::ranges::any_of(all_families(), known) ? *text : whole;
}

void refuse_experts(ConfigReader& r) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"})
    if (r.integer(key).value_or(0) > 1)
      r.refuse(ErrorKind::kUnsupported, key, fmt::format("mixture of experts ('{}') is not supported", key));
}

tl::unexpected<Error> told(const Error& error) {
  return tl::unexpected(retold(error, "config.json: " + error.message));
}

}  // namespace

Expected<ModelSpec> model_from_config_json(std::string_view text) {
  const auto parsed = parse_json(text, kMaxBytes, kMaxDepth);
  if (!parsed) return fail(ErrorKind::kInvalidValue, "", "config.json: " + parsed.error().message);
  if (!parsed->is_object())
    return fail(ErrorKind::kInvalidValue, "", "config.json: the text is not a JSON object");
  const nlohmann::json& said = text_part(*parsed);
  ConfigReader of_family(said);
  const Family* family = family_in(of_family);
  if (!family) return told(*of_family.error());
  nlohmann::json object = nlohmann::json::parse(family->defaults);
  object.update(said);
  ConfigReader r(object);
  ModelSpec m;
  m.family = family->name;
  if (!family->experts) refuse_experts(r);
  m.vocab_size = r.required("vocab_size");
  family->read(r, m);
  if (r.error()) return told(*r.error());
  auto spec = completed(m);
  if (!spec) return told(spec.error());
  return spec;
}

}  // namespace sweep::shape
