// Models of a grid: a catalogue name, {config_json: path}, or explicit dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/expected.h"
#include "base/input_file.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/latent_dimensions.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_values.h"

namespace sweep::grid {
namespace {

constexpr std::size_t kMaxConfigBytes = 1u << 20;

const shape::LatentDimension* latent_dimension(std::string_view key) {
  const auto found = std::ranges::find(shape::kLatentDimensions, key, &shape::LatentDimension::key);
  return found == shape::kLatentDimensions.end() ? nullptr : &*found;
}

// Keys of a model whose values are whole numbers: its dimensions.
bool is_dimension(std::string_view key) {
  constexpr std::array<std::string_view, 5> kOthers{"base", "config_json", "name", "family",
                                                    "tie_embeddings"};
  return std::ranges::find(kModelKeys, key) != kModelKeys.end() &&
         std::ranges::find(kOthers, key) == kOthers.end();
}

}  // namespace

i64 least_dimension(std::string_view key) {
  const auto* latent = latent_dimension(key);
  const bool may_be_absent =
      (latent != nullptr && latent->may_be_absent) || key.starts_with("sliding_window");
  return may_be_absent ? 0 : 1;
}

// A map whose dimensions have several values, as in {base: gpt2-xl, layers: {range: [12, 96, 12]}}, makes a model of
// each combination.
Status ValueReader::append_model(const Node& node, Dimension& out) {
  if (!node.is_map()) return append_model(node, {}, out);
  std::vector<Picks> all(1);
  for (const Entry& entry : node.entries) {
    // A key that takes no list is refused where it is read.
    if (entry.value->is_scalar() || !is_dimension(entry.key)) continue;
    const auto values = many(*entry.value, Symbol{entry.key, Type::kInt, Origin::kDimension, false, {}});
    if (!values) return tl::unexpected(values.error());
    if (all.size() * values->count > kMaxModels)
      return document_.refuse(entry.place, {ErrorKind::kInvalidValue, entry.key},
                              "more than {} models; list fewer values", kMaxModels);
    std::vector<Picks> longer;
    for (const Picks& picks : all)
      for (const Cell& value : values->cells) longer.emplace_back(picks).emplace(entry.key, value.i);
    all = std::move(longer);
  }
  for (const Picks& picks : all) SWEEP_TRY(append_model(node, picks, out));
  return {};
}

Status ValueReader::append_model(const Node& node, const Picks& picks, Dimension& out) {
  SWEEP_GET(const auto entry, node.is_map() ? model_from_map(node, picks) : model_by_name(node));
  SWEEP_TRY(remember(entry, node.place));
  const bool first = out.count == 0;
  if (first) out.slots = {spec_.scope.slot("model")};
  out.cells.push_back({entry.word});
  for (const auto& [name, value] : dimensions_of(entry.spec)) {
    if (first) out.slots.push_back(spec_.scope.slot(name));
    out.cells.push_back({value});
  }
  out.count++;
  out.held.resize(out.cells.size(), Presence::kValue);
  return {};
}

// One label, one set of dimensions and back: labels are not hashed into trial ids, so two labels would be one
// trial.
Status ValueReader::remember(const ModelEntry& entry, Place at) {
  const std::string& label = spec_.scope.words.at(entry.word);
  for (const ModelEntry& known : spec_.models) {
    if (known.word == entry.word && known.spec == entry.spec) return {};
    if (known.word == entry.word)
      return document_.refuse(at, {ErrorKind::kConflict, label},
                              "two models are called '{}' but differ; give each its own name", label);
    if (known.spec == entry.spec) {
      return document_.refuse(
          at, {ErrorKind::kConflict, label},
          "the models '{}' and '{}' have the same dimensions, so their trials are the same; keep one",
          spec_.scope.words.at(known.word), label);
    }
  }
  for (const auto& named : shape::all_models()) {
    if (named.name == label && named.spec != entry.spec) {
      return document_.refuse(
          at, {ErrorKind::kConflict, label},
          "'{}' is a model of the catalogue with other dimensions; give this one its own name", label);
    }
  }
  if (spec_.models.size() >= kMaxModels) {
    return document_.refuse(at, {ErrorKind::kInvalidValue, "model"}, "more than {} models; split the grid",
                            kMaxModels);
  }
  spec_.models.push_back(entry);
  return {};
}

std::string ValueReader::label_of(const ModelSpec& m) const {
  const std::string experts = m.experts > 0 ? fmt::format("-e{}x{}", m.experts_per_token, m.experts) : "";
  const std::string encoder = m.has_encoder() ? fmt::format("{}+", m.encoder_layers) : "";
  return fmt::format("{}-{}{}x{}-h{}-kv{}-ff{}-v{}{}", m.family, encoder, m.layers, m.hidden_size, m.heads,
                     m.kv_heads, m.intermediate_size, m.vocab_size, experts);
}

Expected<ModelEntry> ValueReader::model_by_name(const Node& node) {
  SWEEP_GET(const auto name, read_word(document_, node, "model"));
  return named_model(name, node.place);
}

// A label of this grid, or a name of the catalogue.
Expected<ModelEntry> ValueReader::named_model(const std::string& name, Place at) {
  std::string own;
  for (const ModelEntry& known : spec_.models) {
    const std::string& label = spec_.scope.words.at(known.word);
    if (label == name) return known;
    if (!shape::find_model(label)) own += fmt::format("{}{}", own.empty() ? "" : ", ", label);
  }
  const auto spec = shape::find_model(name);
  if (!spec)
    return document_.refuse(at, spec.error(), "{}{}{}", spec.error().message,
                            own.empty() ? "" : ". Own models of this grid: ", own);
  return ModelEntry{spec_.scope.words.id(name), *spec};
}

Status ValueReader::set_dimension(const Entry& entry, const Picks& picks, ModelSpec& m) {
  if (entry.key == "family") {
    SWEEP_GET(m.family, read_word(document_, *entry.value, entry.key, 100));
    return {};
  }
  if (entry.key == "tie_embeddings") {
    SWEEP_GET(m.tie_embeddings, read_flag(document_, *entry.value, entry.key));
    return {};
  }
  const auto picked = picks.find(entry.key);
  SWEEP_GET(const auto value, picked != picks.end() ? Expected<i64>(picked->second)
                                                    : read_int(document_, *entry.value, entry.key,
                                                               least_dimension(entry.key), kMaxDimension));
  const std::pair<std::string_view, i64*> members[] = {{"layers", &m.layers},
                                                       {"hidden_size", &m.hidden_size},
                                                       {"heads", &m.heads},
                                                       {"kv_heads", &m.kv_heads},
                                                       {"head_dim", &m.head_dim},
                                                       {"intermediate_size", &m.intermediate_size},
                                                       {"vocab_size", &m.vocab_size},
                                                       {"max_positions", &m.max_positions},
                                                       {"experts", &m.experts},
                                                       {"experts_per_token", &m.experts_per_token},
                                                       {"sliding_window_pattern", &m.sliding_window_pattern},
                                                       {"query_pre_attn_scalar", &m.query_pre_attn_scalar},
                                                       {"encoder_layers", &m.encoder_layers}};
  if (const auto* latent = latent_dimension(entry.key)) m.*(latent->size) = value;
  if (entry.key == "sliding_window" && value == 0) m.sliding_window_pattern = 0;
  if (entry.key == "sliding_window") m.sliding_window = value > 0 ? std::optional(value) : std::nullopt;
  for (const auto& [key, member] : members) {
    if (key == entry.key) *member = value;
  }
  return {};
}

// Explicit dimensions; with `base` or `config_json` those that differ from a model.
Expected<ModelEntry> ValueReader::model_from_map(const Node& node, const Picks& picks) {
  SWEEP_TRY(check_keys(document_, node, kModelKeys, "of a model"));
  SWEEP_GET(auto start, start_of(node));
  ModelSpec m = start.spec;
  std::string label, changes, picked;
  for (const Entry& entry : node.entries) {
    if (entry.key == "base" || entry.key == "config_json") continue;
    if (entry.key == "name") {
      SWEEP_GET(label, read_word(document_, *entry.value, entry.key, 100));
      continue;
    }
    if (entry.key == "family" && start.given)
      return document_.refuse(entry.place, {ErrorKind::kConflict, "family"},
                              "the family comes from the model that is changed; remove it");
    SWEEP_TRY(set_dimension(entry, picks, m));
    const auto pick = picks.find(entry.key);
    const bool one = pick == picks.end();
    changes += fmt::format("-{}-{}", entry.key, one ? entry.value->text : fmt::format("{}", pick->second));
    if (!one) picked += fmt::format("-{}-{}", entry.key, pick->second);
  }
  if (!label.empty()) label += picked;
  const auto spec = shape::completed(m);
  if (!spec) return document_.refuse(node.place, spec.error(), "model: {}", spec.error().message);
  if (label.empty() && !start.label.empty()) label = start.label + changes;
  return ModelEntry{spec_.scope.words.id(label.empty() ? label_of(*spec) : label), *spec};
}

// The model that a map starts from. What follows from other dimensions there follows from the changed ones
// too.
Expected<ValueReader::Start> ValueReader::start_of(const Node& node) {
  const Node *base = node.find("base"), *file = node.find("config_json");
  if (base != nullptr && file != nullptr)
    return document_.refuse(node.place, {ErrorKind::kConflict, "base"},
                            "a model starts from base or from config_json; keep one of them");
  Start start;
  start.given = base != nullptr || file != nullptr;
  if (base != nullptr) {
    SWEEP_GET(const auto name, read_word(document_, *base, "base"));
    SWEEP_GET(const auto entry, named_model(name, base->place));
    start.spec = entry.spec;
    start.label = name;
  } else if (file != nullptr) {
    SWEEP_GET(const auto written, read_word(document_, *file, "config_json", 4096));
    const std::filesystem::path path = (folder_ / written).lexically_normal();
    SWEEP_GET(const auto spec, config(path, file->place));
    start.spec = spec;
    start.label = path.parent_path().filename().string();
  }
  ModelSpec& m = start.spec;
  const bool resized = node.find("hidden_size") != nullptr || node.find("heads") != nullptr;
  if (resized && m.heads > 0 && m.head_dim * m.heads == m.hidden_size) m.head_dim = 0;
  if (node.find("heads") != nullptr && m.kv_heads == m.heads) m.kv_heads = 0;
  if (resized && m.family == "gpt2" && m.intermediate_size == 4 * m.hidden_size) m.intermediate_size = 0;
  return start;
}

Expected<ModelSpec> ValueReader::config(const std::filesystem::path& path, Place at) {
  if (const auto known = read_.find(path); known != read_.end()) return known->second;
  const auto text = read_input(path, kMaxConfigBytes, Streams::kRefused);
  if (!text)
    return document_.refuse(at, text.error(), "config_json: {} (the path is relative to the grid file)",
                            text.error().message);
  const auto spec = shape::model_from_config_json(text->bytes);
  if (!spec) return document_.refuse(at, spec.error(), "{}: {}", path.string(), spec.error().message);
  read_[path] = *spec;
  return spec;
}

}  // namespace sweep::grid
