// Winners as grid files: one alone as a base, several as the points of one file.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/latent_dimensions.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/best.h"
#include "schema/codec.h"
#include "schema/labels.h"
#include "schema/rehearsal.h"

namespace sweep::answers {
namespace {

// Axes that the grid derives from others or from the hardware when they are not given: always spelt out, so
// that the pasted configuration is exactly this one.
constexpr std::string_view kAlways[] = {"hardware",         "nodes",      "gpus_per_node",     "dp",
                                        "micro_batch_size", "grad_accum", "global_batch_size", "seq_len",
                                        "precision"};

bool plain_yaml(std::string_view s) {
  static constexpr std::string_view kWords[] = {"y",    "n",     "yes",  "no",  "on", "off",
                                                "true", "false", "null", "nan", "inf"};
  if (s.empty() || s.size() > 200) return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inner = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  if (!letter(s.front()) || !std::all_of(s.begin(), s.end(), inner)) return false;
  std::string lower(s);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return std::find(std::begin(kWords), std::end(kWords), lower) == std::end(kWords);
}

// A JSON string is a double-quoted YAML scalar.
std::string yaml_text(std::string_view s) {
  return plain_yaml(s) ? std::string(s) : nlohmann::json(safe_text(s)).dump();
}

std::string yaml_value(const Value& value, std::string_view type) {
  if (type == "flag") return std::get<i64>(value) != 0 ? "true" : "false";
  if (const auto* v = std::get_if<i64>(&value)) return std::to_string(*v);
  if (const auto* v = std::get_if<double>(&value)) return nlohmann::json(*v).dump();
  if (const auto* v = std::get_if<std::string>(&value)) return yaml_text(*v);
  return "null";
}

// The keys of latent attention and of what comes with it, where they are not absent.
std::string latents_yaml(const ModelSpec& m) {
  std::string out;
  for (const auto& [key, size, _] : shape::kLatentDimensions)
    if (m.*size > 0) out += fmt::format("{}: {}, ", key, m.*size);
  return out;
}

// The keys of windows and of what divides scores, in the same way.
std::string windows_yaml(const ModelSpec& m) {
  std::string out;
  for (const auto& [key, size] : {std::pair("sliding_window", m.sliding_window.value_or(0)),
                                  std::pair("sliding_window_pattern", m.sliding_window_pattern),
                                  std::pair("query_pre_attn_scalar", m.query_pre_attn_scalar)})
    if (size > 0) out += fmt::format("{}: {}, ", key, size);
  return out;
}

// Catalogue name when the dimensions are the catalogue's; else a one-line map of the keys that grid files
// accept, with a remark when those do not say all of the model.
std::string model_yaml(const Trial& trial) {
  const ModelSpec& m = trial.spec;
  const auto known = shape::find_model(trial.model);
  const bool imported = m.layers == 0;  // a row without dimensions: the name is all there is
  if ((known && *known == m) || imported) return yaml_text(trial.model);
  ModelSpec said;
  said.family = m.family;
  said.layers = m.layers;
  said.hidden_size = m.hidden_size;
  said.heads = m.heads;
  said.kv_heads = m.kv_heads;
  said.head_dim = m.head_dim;
  said.intermediate_size = m.intermediate_size;
  said.vocab_size = m.vocab_size;
  said.max_positions = m.max_positions;
  said.tie_embeddings = m.tie_embeddings;
  said.sliding_window = m.sliding_window;
  said.sliding_window_pattern = m.sliding_window_pattern;
  said.query_pre_attn_scalar = m.query_pre_attn_scalar;
  said.experts = m.experts;
  said.encoder_layers = m.encoder_layers;
  said.experts_per_token = m.experts_per_token;
  for (const auto& dimension : shape::kLatentDimensions) said.*dimension.size = m.*dimension.size;
  const auto complete = shape::completed(said);
  std::string out = fmt::format(
      "{{name: {}, family: {}, layers: {}, hidden_size: {}, heads: {}, kv_heads: {}, head_dim: {}, "
      "intermediate_size: {}, vocab_size: {}, {}{}{}tie_embeddings: {}}}",
      yaml_text(trial.model), yaml_text(m.family), m.layers, m.hidden_size, m.heads, m.kv_heads, m.head_dim,
      m.intermediate_size, m.vocab_size,
      m.max_positions > 0 ? fmt::format("max_positions: {}, ", m.max_positions) : "",
      m.experts > 0 ? fmt::format("experts: {}, experts_per_token: {}, ", m.experts, m.experts_per_token)
                    : "",
      windows_yaml(m) + latents_yaml(m) +
          (m.has_encoder() ? fmt::format("encoder_layers: {}, ", m.encoder_layers) : ""),
      m.tie_embeddings);
  if (!complete || !(*complete == m))
    out +=
        "  # norm, RoPE, routing or window settings differ: use {config_json: PATH} for exactly this model";
  return out;
}

bool always_said(const Column& c, const GridForm& form) {
  return std::find(std::begin(kAlways), std::end(kAlways), c.key) != std::end(kAlways) ||
         std::ranges::find(form.swept, c.key) != form.swept.end();
}

std::string measure_yaml(const GridForm& form) {
  if (!form.measure) return "";
  return fmt::format("measure: {{warmup_steps: {}, steps: {}, repeats: {}}}\n", form.measure->warmup_steps,
                     form.measure->steps, form.measure->repeats);
}

}  // namespace

std::string axis_line(const Column& c, const ResultRow& row) {
  const Value value = c.get(row);
  return value.index() != 0 ? fmt::format("{}: {}\n", c.key, yaml_value(value, c.type)) : "";
}

namespace {

// The lines of a base; NULL has no spelling, and is the default where it can stand.
std::string axis_yaml(const Column& c, const ResultRow& row, const GridForm& form) {
  const Value value = c.get(row);
  const bool said = value.index() != 0 && (always_said(c, form) || value != c.default_value);
  return said ? "  " + axis_line(c, row) : "";
}

// A name that grid files take: letters, digits, '.', '_', '-'.
std::string grid_name(std::string_view s) {
  std::string out(s.substr(0, 80));
  for (char& c : out) {
    const bool fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!fine) c = '_';
  }
  return out;
}

// The base: values on which all winners agree; the model too if it is one.
std::string common_yaml(std::span<const ResultRow* const> winners, const std::vector<const Column*>& shared,
                        const GridForm& form) {
  std::string out;
  const bool one_model = std::all_of(winners.begin(), winners.end(), [&](const ResultRow* row) {
    return row->trial.model == winners[0]->trial.model && row->trial.spec == winners[0]->trial.spec;
  });
  if (one_model) out += fmt::format("model: {}\n", model_yaml(winners[0]->trial));
  out += "base:\n";
  for (const Column* c : shared) out += axis_yaml(*c, *winners[0], form);
  return out;
}

std::string points_yaml(std::span<const BestOfGroup> groups, const BestOptions& options) {
  std::vector<const ResultRow*> winners;
  for (const auto& group : groups) {
    if (group.winner) winners.push_back(&*group.winner);
  }
  std::vector<const Column*> shared, differ;
  for (const Column& c : columns()) {
    if (c.role != Role::kAxis || c.key == "model") continue;
    const bool same = std::all_of(winners.begin(), winners.end(),
                                  [&](const ResultRow* row) { return c.get(*row) == c.get(*winners[0]); });
    (same ? shared : differ).push_back(&c);
  }
  const std::string base = common_yaml(winners, shared, options.form);
  const bool say_model = !base.starts_with("model:");
  std::string out = fmt::format("name: {}\n{}{}include:\n",
                                grid_name(fmt::format("best-by-{}", fmt::join(options.group_by, "-"))),
                                measure_yaml(options.form), base);
  for (const auto& group : groups) {
    if (!group.winner) continue;
    out += winner_notes(group, options);
    std::string_view start = "  - ";
    if (say_model)
      out += fmt::format("{}model: {}\n", std::exchange(start, "    "), model_yaml(group.winner->trial));
    for (const Column* c : differ) {
      const std::string line = axis_line(*c, *group.winner);
      if (!line.empty()) out += std::string(std::exchange(start, "    ")) + line;
    }
    if (start == "  - ")
      out += "  - {}\n";  // the groups are of labels: the configuration is one and the same
  }
  return out;
}

const char* type_of_axis(const nlohmann::json& value) {
  if (value.is_boolean()) return "flag";
  if (value.is_number_integer()) return "integer";
  return value.is_number() ? "number" : "text";
}

// An axis of the grid's own; its labels say of which type a value was, and its unit.
nlohmann::json own_axis(const nlohmann::json& labels, const std::string& name, const nlohmann::json& text) {
  const nlohmann::json value = labels.value(name, text);
  nlohmann::json out{{"type", type_of_axis(value)}, {"default", value}};
  const nlohmann::json units = labels.value(std::string(kLabelUnits), nlohmann::json::object());
  if (units.contains(name)) out["unit"] = units[name];
  return out;
}

// The section `workload` of a grid that runs this trial's command again. JSON is YAML too.
std::string workload_yaml(const ResultRow& row) {
  nlohmann::json in = nlohmann::json::parse(row.trial.program, nullptr, false);
  if (!in.is_object()) return "";
  nlohmann::json out{{"command", in["argv"]},
                     {"processes", in.value("per_node", false) ? "per_node" : "per_rank"}};
  for (const char* key : {"env", "files", "folder", "stop_after_steps", "log_patterns"})
    if (in.contains(key)) out[key] = in[key];
  const auto labels = label_members(row.trial.labels);
  if (in.contains("axes"))
    for (const auto& [name, value] : in["axes"].items()) out["axes"][name] = own_axis(labels, name, value);
  return "workload: " + out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// A command's model is its own business where the grid named none.
std::string model_line(const ResultRow& row) {
  const bool known = row.trial.program.empty() || row.trial.spec.layers > 0;
  return (known ? fmt::format("model: {}\n", model_yaml(row.trial)) : "") +
         (row.trial.program.empty() ? "" : workload_yaml(row));
}

}  // namespace

std::optional<MeasurePlan> measure_of(const std::string& sweep, const SweepOptions& options) {
  const bool rehearsed = is_rehearsal(sweep) && options.measure == kRehearsalMeasure;
  return rehearsed ? std::nullopt : options.measure;
}

std::string as_grid_yaml(const ResultRow& row, const GridForm& form) {
  const std::string name = fmt::format("best-{}", row.trial_id.empty() ? "trial" : safe_text(row.trial_id));
  std::string out =
      fmt::format("name: {}\n{}{}base:\n", yaml_text(name), model_line(row), measure_yaml(form));
  for (const Column& c : columns()) {
    if (c.role == Role::kAxis && c.key != "model" && c.key != "workload") out += axis_yaml(c, row, form);
  }
  return out;
}

std::string best_yaml(std::span<const BestOfGroup> groups, const BestOptions& options) {
  std::string out;
  std::vector<const BestOfGroup*> won;
  for (const auto& group : groups) {
    if (group.winner)
      won.push_back(&group);
    else
      out += fmt::format("# {}: {}\n", group_name(group, options), group.why_none);
  }
  if (won.empty()) return out;
  const bool commands =
      std::ranges::any_of(won, [](const auto* each) { return !each->winner->trial.program.empty(); });
  if (commands && won.size() > 1) {
    out += "# each is a command with a grid of its own; this is the first:\n";
    won.erase(won.begin() + 1, won.end());
  }
  if (won.size() == 1)
    return out + winner_notes(*won[0], options) + as_grid_yaml(*won[0]->winner, options.form);
  return out +
         fmt::format("# {} points: the best of each group by {}\n", won.size(),
                     fmt::join(options.group_by, ", ")) +
         points_yaml(groups, options);
}

}  // namespace sweep::answers
