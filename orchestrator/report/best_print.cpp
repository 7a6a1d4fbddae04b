#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/report/best.h"
#include "orchestrator/report/format.h"
#include "orchestrator/report/measured.h"
#include "orchestrator/report/tables.h"
#include "schema/codec.h"

namespace sweep::report {
namespace {

constexpr std::size_t kPastedGroups = 4;  // more groups: only the overall best is spelt out
constexpr std::size_t kNamedTies = 5;

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

// Catalogue name when the dimensions are the catalogue's; else a one-line map of the keys that grid files accept, with a
// remark when those do not say all of the model.
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
  said.experts = m.experts;
  said.experts_per_token = m.experts_per_token;
  const auto complete = shape::completed(said);
  std::string out = fmt::format(
      "{{name: {}, family: {}, layers: {}, hidden_size: {}, heads: {}, kv_heads: {}, head_dim: {}, "
      "intermediate_size: {}, vocab_size: {}, {}{}tie_embeddings: {}}}",
      yaml_text(trial.model), yaml_text(m.family), m.layers, m.hidden_size, m.heads, m.kv_heads, m.head_dim,
      m.intermediate_size, m.vocab_size,
      m.max_positions > 0 ? fmt::format("max_positions: {}, ", m.max_positions) : "",
      m.experts > 0 ? fmt::format("experts: {}, experts_per_token: {}, ", m.experts, m.experts_per_token)
                    : "",
      m.tie_embeddings);
  if (!complete || !(*complete == m))
    out += "  # norm, RoPE or window settings differ: use {config_json: PATH} for exactly this model";
  return out;
}

nlohmann::json json_of(const Value& value, std::string_view type) {
  if (type == "flag" && std::holds_alternative<i64>(value)) return std::get<i64>(value) != 0;
  if (const auto* v = std::get_if<i64>(&value)) return *v;
  if (const auto* v = std::get_if<double>(&value)) return *v;
  if (const auto* v = std::get_if<std::string>(&value)) return *v;
  return nullptr;
}

nlohmann::json json_of(const ResultRow& row) {
  nlohmann::json axes = nlohmann::json::object(), metrics = nlohmann::json::object();
  for (const Column& c : columns()) {
    const Value value = c.get(row);
    if (c.role == Role::kAxis && (c.key == "model" || value.index() != 0))
      axes[std::string(c.key)] = json_of(value, c.type);
    if (c.role == Role::kMetric && value.index() != 0) metrics[std::string(c.key)] = json_of(value, c.type);
  }
  return {{"trial", row.trial_id},
          {"configuration", axes},
          {"model_dimensions", to_json(row.trial.spec)},
          {"metrics", metrics}};
}

std::string group_name(const BestOfGroup& group, const BestOptions& options) {
  std::string out;
  for (std::size_t i = 0; i < group.key.size(); ++i) {
    out += fmt::format("{}{}={}", i > 0 ? " " : "", options.group_by[i], show(group.key[i]));
  }
  return out.empty() ? "all results" : out;
}

std::string value_text(const BestOfGroup& group, const BestOptions& options) {
  const Field metric = *resolve_metric(options.metric);
  const Scale scale = scale_for(metric.unit(), group.value);
  std::string out = fmt::format("{} {}", options.metric, scale(group.value));
  if (!scale.unit.empty()) out += " " + scale.unit;
  if (group.interval)
    out += fmt::format(" (95 % interval {} to {})", scale(group.interval->low), scale(group.interval->high));
  return out;
}

// How far the first place can be trusted: who ties with it, and what could not be told.
std::string trust_notes(const BestOfGroup& group) {
  std::string out;
  if (!group.ties.empty()) {
    std::vector<std::string> names;
    for (const std::string& id : group.ties) {
      if (names.size() < kNamedTies) names.push_back(safe_text(id));
    }
    out += fmt::format("# TIED with {} more (95 % intervals overlap; any of them may be the best): {}{}\n",
                       group.ties.size(), fmt::join(names, ", "),
                       group.ties.size() > names.size() ? ", ..." : "");
  }
  if (group.ranked > 1 && !group.interval)
    out +=
        "# ties cannot be told: no confidence interval (fewer than 6 timed steps, or a metric without one)\n";
  else if (group.without_interval > 0)
    out += fmt::format("# {} more have no confidence interval: whether they tie cannot be told\n",
                       group.without_interval);
  else if (group.ranked > 1 && group.ties.empty())
    out += "# ahead of the next by more than the 95 % intervals (spread of the steps of one attempt)\n";
  return out;
}

// What a winner's configuration is headed with, as comments of the YAML below it.
std::string notes(const BestOfGroup& group, const BestOptions& options) {
  std::string out = fmt::format("# {}: {}, best of {}", group_name(group, options),
                                value_text(group, options), group.ranked);
  if (group.median && group.ranked > 2 && *group.median != 0 && group.value != 0) {
    const bool lower = lower_is_better(options.metric);
    out += fmt::format(", {} times as good as the median",
                       significant(lower ? *group.median / group.value : group.value / *group.median));
  }
  out += "\n";
  out += trust_notes(group);
  if (group.too_full > 0)
    out += fmt::format("# left out: {} with less headroom than asked\n", group.too_full);
  if (group.unknown_headroom > 0)
    out += fmt::format("# left out: {} whose headroom is not known\n", group.unknown_headroom);
  if (options.provenance_of) {
    std::string_view head = "measured:";
    for (const auto& line : measured_lines(*group.winner, options.provenance_of(*group.winner)))
      out += fmt::format("# {} {}\n", std::exchange(head, "         "), line);
  }
  return out;
}

const BestOfGroup* overall_best(std::span<const BestOfGroup> groups, const BestOptions& options) {
  const bool lower = lower_is_better(options.metric);
  const BestOfGroup* out = nullptr;
  for (const auto& group : groups) {
    if (group.winner && (!out || (lower ? group.value < out->value : group.value > out->value))) out = &group;
  }
  return out;
}

}  // namespace

std::string as_grid_yaml(const ResultRow& row) {
  const std::string name = fmt::format("best-{}", row.trial_id.empty() ? "trial" : safe_text(row.trial_id));
  std::string out = fmt::format("name: {}\nmodel: {}\nbase:\n", yaml_text(name), model_yaml(row.trial));
  for (const Column& c : columns()) {
    if (c.role != Role::kAxis || c.key == "model") continue;
    const Value value = c.get(row);
    const bool always = std::find(std::begin(kAlways), std::end(kAlways), c.key) != std::end(kAlways);
    if (always || value != c.default_value)
      out += fmt::format("  {}: {}\n", c.key, yaml_value(value, c.type));
  }
  return out;
}

Table best_table(std::span<const Field> differ, std::span<const BestOfGroup> groups,
                 const BestOptions& options) {
  std::vector<ResultRow> winners;
  for (const auto& group : groups) {
    if (group.winner) winners.push_back(*group.winner);
  }
  // What varies in the whole sweep tells winners apart even where all winners agree.
  std::vector<Field> shown;
  for (const Field& field : differ) {
    if (std::find(options.group_by.begin(), options.group_by.end(), field.name()) == options.group_by.end())
      shown.push_back(field);
  }
  std::vector<std::string> metrics = {options.metric, "step_ms", "mfu", "peak_allocated_bytes"};
  Table table;
  table.columns = options.group_by;
  for (const Field& field : shown) table.columns.push_back(field.name());
  std::vector<Field> values;
  for (const std::string& name : metrics) {
    if (std::find(table.columns.begin(), table.columns.end(), name) != table.columns.end()) continue;
    const Field field(*find_column(name));
    const bool any = std::any_of(winners.begin(), winners.end(),
                                 [&](const ResultRow& r) { return field.of(r).index() != 0; });
    if (!any && name != options.metric) continue;
    table.columns.push_back(name);
    values.push_back(field);
  }
  for (const char* name : {"ties", "of", "trial"}) table.columns.emplace_back(name);
  for (const auto& group : groups) {
    std::vector<Value> cells = group.key;
    for (const Field& field : shown) cells.push_back(group.winner ? field.of(*group.winner) : Value{});
    for (const Field& field : values) cells.push_back(group.winner ? field.of(*group.winner) : Value{});
    cells.push_back(group.winner ? Value{static_cast<i64>(group.ties.size())} : Value{});
    cells.push_back(Value{group.ranked});
    cells.push_back(group.winner ? Value{group.winner->trial_id} : Value{});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string best_text(std::span<const Field> differ, std::span<const BestOfGroup> groups,
                      const BestOptions& options, std::size_t width) {
  if (groups.empty()) return "No results yet: `sweep status` shows how far the sweep is.\n";
  std::string out = to_text(best_table(differ, groups, options), width);
  const BestOfGroup* overall = overall_best(groups, options);
  const bool all = groups.size() <= kPastedGroups;
  for (const auto& group : groups) {
    if (!group.winner) out += fmt::format("\n{}: {}\n", group_name(group, options), group.why_none);
    if (group.winner && (all || &group == overall))
      out += fmt::format("\n{}{}", notes(group, options), as_grid_yaml(*group.winner));
  }
  if (!all)
    out += fmt::format("\nThe best of all {} groups is above; --yaml prints the configuration of each.\n",
                       groups.size());
  return out;
}

std::string best_yaml(std::span<const BestOfGroup> groups, const BestOptions& options) {
  const auto won = static_cast<std::size_t>(
      std::count_if(groups.begin(), groups.end(), [](const BestOfGroup& g) { return g.winner.has_value(); }));
  std::string out;
  if (won > 1)
    out += fmt::format("# {} YAML documents, each a whole grid file: the best of each group by {}\n", won,
                       fmt::join(options.group_by, ", "));
  std::size_t shown = 0;
  for (const auto& group : groups) {
    if (!group.winner) {
      out += fmt::format("# {}: {}\n", group_name(group, options), group.why_none);
      continue;
    }
    if (won > 1) out += "---\n";
    out += notes(group, options);
    if (won > 1) out += fmt::format("# document {} of {}\n", ++shown, won);
    out += as_grid_yaml(*group.winner);
  }
  return out;
}

std::string best_json(std::span<const BestOfGroup> groups, const BestOptions& options) {
  auto out = nlohmann::json::array();
  for (const auto& group : groups) {
    nlohmann::json key = nlohmann::json::object();
    for (std::size_t i = 0; i < group.key.size(); ++i) key[options.group_by[i]] = json_of(group.key[i], "");
    nlohmann::json entry = {{"group", key},
                            {"metric", options.metric},
                            {"ranked", group.ranked},
                            {"not_run", group.not_run},
                            {"not_ok", group.not_ok},
                            {"not_measured", group.not_measured},
                            {"too_full", group.too_full},
                            {"unknown_headroom", group.unknown_headroom}};
    entry["winner"] = group.winner ? json_of(*group.winner) : nlohmann::json(nullptr);
    entry["value"] = group.winner ? nlohmann::json(group.value) : nlohmann::json(nullptr);
    entry["interval"] =
        group.interval ? nlohmann::json{group.interval->low, group.interval->high} : nlohmann::json(nullptr);
    entry["ties"] = group.ties;
    entry["without_interval"] = group.without_interval;
    if (group.winner && options.provenance_of)
      entry["measured"] = measured_json(*group.winner, options.provenance_of(*group.winner));
    entry["runners_up"] = group.runners_up;
    if (!group.winner) entry["why_none"] = group.why_none;
    out.push_back(std::move(entry));
  }
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace sweep::report
