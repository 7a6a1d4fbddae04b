// Models of a grid: a catalogue name, {config_json: path}, or explicit dimensions.
#include <fmt/format.h>

#include <fstream>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_values.h"

namespace sweep::grid {
namespace {

constexpr std::uintmax_t kMaxConfigBytes = 1u << 20;
constexpr i64 kMaxDimension = i64{1} << 40;  // completed() knows the true bounds of each

// The text of a regular file of bounded size.
Expected<std::string> slurp(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return fail(fmt::format("there is no file {}", path.string()));
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxConfigBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (in.bad() || (in.fail() && !in.eof())) return fail(fmt::format("{} cannot be read", path.string()));
  if (text.size() > kMaxConfigBytes)
    return fail(fmt::format("{} is larger than {} bytes", path.string(), kMaxConfigBytes));
  return text;
}

}  // namespace

Status ValueReader::append_model(const Node& node, Dimension& out) {
  const auto entry = model(node);
  if (!entry) return tl::unexpected(entry.error());
  SWEEP_GRID_TRY(remember(*entry, node.place));
  const bool first = out.count == 0;
  if (first) out.slots = {spec_.scope.slot("model")};
  out.cells.push_back({entry->word});
  for (const auto& [name, value] : dimensions_of(entry->spec)) {
    if (first) out.slots.push_back(spec_.scope.slot(name));
    out.cells.push_back({value});
  }
  out.count++;
  out.held.resize(out.cells.size(), Held::kValue);
  return {};
}

// One label, one set of dimensions and back: labels are not hashed into trial ids, so two labels would be one
// trial.
Status ValueReader::remember(const ModelEntry& entry, Place at) {
  const std::string& label = spec_.scope.words.at(entry.word);
  for (const ModelEntry& known : spec_.models) {
    if (known.word == entry.word && known.spec == entry.spec) return {};
    if (known.word == entry.word)
      return tl::unexpected(document_.error(
          at, fmt::format("two models are called '{}' but differ; give each its own name", label)));
    if (known.spec == entry.spec) {
      return tl::unexpected(document_.error(
          at, fmt::format(
                  "the models '{}' and '{}' have the same dimensions, so their trials are the same; keep one",
                  spec_.scope.words.at(known.word), label)));
    }
  }
  for (const auto& named : shape::all_models()) {
    if (named.name == label && named.spec != entry.spec) {
      return tl::unexpected(document_.error(
          at,
          fmt::format("'{}' is a model of the catalogue with other dimensions; give this one its own name",
                      label)));
    }
  }
  if (spec_.models.size() >= kMaxModels) {
    return tl::unexpected(
        document_.error(at, fmt::format("more than {} models; split the grid", kMaxModels)));
  }
  spec_.models.push_back(entry);
  return {};
}

std::string ValueReader::label_of(const ModelSpec& m) const {
  const std::string experts = m.experts > 0 ? fmt::format("-e{}x{}", m.experts_per_token, m.experts) : "";
  return fmt::format("{}-{}x{}-h{}-kv{}-ff{}-v{}{}", m.family, m.layers, m.hidden_size, m.heads, m.kv_heads,
                     m.intermediate_size, m.vocab_size, experts);
}

Expected<ModelEntry> ValueReader::model(const Node& node) {
  if (node.is_map())
    return node.find("config_json") != nullptr ? model_from_file(node) : model_from_map(node);
  const auto name = read_word(document_, node, "model");
  if (!name) return tl::unexpected(name.error());
  const auto spec = shape::find_model(*name);
  if (!spec) return tl::unexpected(document_.error(node.place, spec.error().message));
  return ModelEntry{spec_.scope.words.id(*name), *spec};
}

Expected<ModelEntry> ValueReader::model_from_map(const Node& node) {
  SWEEP_GRID_TRY(check_keys(document_, node, kModelKeys, "of a model"));
  ModelSpec m;
  std::string label;
  for (const Entry& entry : node.entries) {
    if (entry.key == "name" || entry.key == "family") {
      auto word = read_word(document_, *entry.value, entry.key, 100);
      if (!word) return tl::unexpected(word.error());
      (entry.key == "name" ? label : m.family) = *word;
    } else if (entry.key == "tie_embeddings") {
      const auto flag = read_flag(document_, *entry.value, entry.key);
      if (!flag) return tl::unexpected(flag.error());
      m.tie_embeddings = *flag;
    } else {
      const auto value = read_int(document_, *entry.value, entry.key, 1, kMaxDimension);
      if (!value) return tl::unexpected(value.error());
      const std::pair<std::string_view, i64*> members[] = {
          {"layers", &m.layers},         {"hidden_size", &m.hidden_size},
          {"heads", &m.heads},           {"kv_heads", &m.kv_heads},
          {"head_dim", &m.head_dim},     {"intermediate_size", &m.intermediate_size},
          {"vocab_size", &m.vocab_size}, {"max_positions", &m.max_positions},
          {"experts", &m.experts},       {"experts_per_token", &m.experts_per_token}};
      for (const auto& [key, member] : members) {
        if (key == entry.key) *member = *value;
      }
    }
  }
  const auto spec = shape::completed(m);
  if (!spec)
    return tl::unexpected(document_.error(node.place, fmt::format("model: {}", spec.error().message)));
  return ModelEntry{spec_.scope.words.id(label.empty() ? label_of(*spec) : label), *spec};
}

Expected<ModelSpec> ValueReader::config(const std::filesystem::path& path, Place at) {
  if (const auto known = read_.find(path); known != read_.end()) return known->second;
  const auto text = slurp(path);
  if (!text) {
    return tl::unexpected(document_.error(
        at, fmt::format("config_json: {}; the path is relative to the grid file", text.error().message)));
  }
  const auto spec = shape::model_from_config_json(*text);
  if (!spec)
    return tl::unexpected(document_.error(at, fmt::format("{}: {}", path.string(), spec.error().message)));
  read_[path] = *spec;
  return spec;
}

Expected<ModelEntry> ValueReader::model_from_file(const Node& node) {
  SWEEP_GRID_TRY(check_keys(document_, node, std::array<std::string_view, 2>{"config_json", "name"},
                            "beside config_json"));
  const Node& path_node = *node.find("config_json");
  const auto written = read_word(document_, path_node, "config_json", 4096);
  if (!written) return tl::unexpected(written.error());
  const std::filesystem::path path = (folder_ / *written).lexically_normal();
  const auto spec = config(path, path_node.place);
  if (!spec) return tl::unexpected(spec.error());
  std::string label = path.parent_path().filename().string();
  if (const Node* name = node.find("name")) {
    const auto word = read_word(document_, *name, "name", 100);
    if (!word) return tl::unexpected(word.error());
    label = *word;
  }
  return ModelEntry{spec_.scope.words.id(label.empty() ? label_of(*spec) : label), *spec};
}

}  // namespace sweep::grid
