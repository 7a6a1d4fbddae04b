
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/answers/tables/measured.h"
#include "orchestrator/answers/tables/tables.h"
#include "schema/codec.h"
#include "schema/ranking.h"
#include "schema/values.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kPastedGroups = 4;  // more groups: only the overall best is spelt out
constexpr std::size_t kNamedTies = 5, kNamedGroups = 5;

nlohmann::json json_of(const ResultRow& row) {
  nlohmann::json axes = nlohmann::json::object(), metrics = nlohmann::json::object();
  for (const Column& c : columns()) {
    const Value value = c.get(row);
    if (c.role == Role::kAxis && (c.key == "model" || value.index() != 0))
      axes[std::string(c.key)] = value_json(value, c.type == "flag");
    if (c.role == Role::kMetric && value.index() != 0)
      metrics[std::string(c.key)] = value_json(value, c.type == "flag");
  }
  return {{"trial", row.trial_id},
          {"configuration", axes},
          {"model_dimensions", to_json(row.trial.spec)},
          {"metrics", metrics}};
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

// Empty: the sweep was named, or there is no other.
std::string source_line(const BestSource& of) {
  return of.chosen_of > 1 ? fmt::format("sweep {}, the latest of {}\n\n", safe_text(of.sweep), of.chosen_of)
                          : "";
}

const BestOfGroup* overall_best(std::span<const BestOfGroup> groups, const BestOptions& options) {
  const Better better = find_column(options.metric)->better;
  const BestOfGroup* out = nullptr;
  for (const auto& group : groups) {
    if (group.winner && (!out || ranks_before(better, group.value, group.winner->trial_id, out->value,
                                              out->winner->trial_id)))
      out = &group;
  }
  return out;
}

// The line of groups that have no best for the same reason.
std::string without_best(std::span<const std::string> names, std::string_view why) {
  return fmt::format("\nNo result for {} group{}: {}: {}{}\n", names.size(), names.size() == 1 ? "" : "s",
                     why, fmt::join(names.first(std::min(names.size(), kNamedGroups)), "; "),
                     names.size() > kNamedGroups ? "; ..." : "");
}

}  // namespace

std::string group_name(const BestOfGroup& group, const BestOptions& options) {
  std::string out;
  for (std::size_t i = 0; i < group.key.size(); ++i) {
    out += fmt::format("{}{}={}", i > 0 ? " " : "", options.group_by[i], show(group.key[i]));
  }
  return out.empty() ? "all results" : out;
}

std::vector<std::string> first_place_notes(const BestOfGroup& group, const BestOptions& options) {
  std::vector<std::string> out;
  if (!group.ties.empty()) {
    std::vector<std::string> names;
    for (const std::string& id : group.ties) {
      if (names.size() < kNamedTies) names.push_back(safe_text(id));
    }
    out.push_back(fmt::format("TIED with {} more ({}; any of them may be the best): {}{}", group.ties.size(),
                              group.interval ? "95 % intervals overlap" : "the same value",
                              fmt::join(names, ", "), group.ties.size() > names.size() ? ", ..." : ""));
  }
  if (group.ranked > 1 && !group.interval)
    out.push_back(fmt::format("{} unknown: {}", group.ties.empty() ? "ties" : "other ties",
                              to_string(why_no_interval(group, options))));
  else if (group.without_interval > 0)
    out.push_back(fmt::format("{} more have no confidence interval: whether they tie is unknown",
                              group.without_interval));
  else if (group.ranked > 1 && group.ties.empty())
    out.emplace_back(
        "ahead of the next by more than the 95 % intervals (spread of the steps of one attempt)");
  return out;
}

std::string winner_notes(const BestOfGroup& group, const BestOptions& options) {
  std::string out = fmt::format("# {}: {}, best of {}", group_name(group, options),
                                value_text(group, options), group.ranked);
  if (group.median && group.ranked > 2 && *group.median != 0 && group.value != 0) {
    const bool lower = lower_is_better(options.metric);
    out += fmt::format(", {} times as good as the median",
                       significant(lower ? *group.median / group.value : group.value / *group.median));
  }
  out += "\n";
  for (const std::string& note : first_place_notes(group, options)) out += "# " + note + "\n";
  if (const BestSource& of = options.source; !of.confirms.empty())
    out += fmt::format("# one of {}: `sweep confirm {}` has the values of all\n",
                       counted(of.allocations, "allocation"), shell_word(safe_text(of.confirms)));
  if (options.rehearsed) out += "# " + rehearsed_line(true);
  if (group.stopped_early > 0)
    out += fmt::format("# left out: {} stopped early, clearly slower than the best so far\n",
                       group.stopped_early);
  if (group.too_full > 0)
    out += fmt::format("# left out: {} with less headroom than asked\n", group.too_full);
  if (group.unknown_headroom > 0)
    out += fmt::format("# left out: {} whose headroom is not known\n", group.unknown_headroom);
  if (find_column(options.metric)->unit == "USD") {
    for (const auto& sentence : price_sentences(std::span(&*group.winner, 1), today()))
      out += "# price: " + sentence + "\n";
  }
  if (options.provenance_of) {
    std::string_view head = "measured:";
    for (const auto& line : measured_lines(*group.winner, options.provenance_of(*group.winner)))
      out += fmt::format("# {} {}\n", std::exchange(head, "         "), line);
  }
  return out;
}

Table best_table(std::span<const Field> differ, std::span<const BestOfGroup> groups,
                 const BestOptions& options) {
  std::vector<ResultRow> winners;
  for (const auto& group : groups) {
    if (group.winner) winners.push_back(*group.winner);
  }
  // Fields that vary in the whole sweep tell winners apart even if all winners agree.
  std::vector<Field> shown;
  for (const Field& field : differ) {
    if (std::find(options.group_by.begin(), options.group_by.end(), field.name()) == options.group_by.end())
      shown.push_back(field);
  }
  std::vector<std::string> metrics = {options.metric, "step_ms", "mfu", "peak_allocated_bytes"};
  Table table;
  table.columns = options.group_by;
  for (const Field& field : shown) add_head(table, field);
  for (const std::string& axis : options.group_by)
    if (const auto field = Field::resolve(axis, winners);
        field && field->is_label() && !field->unit().empty())
      table.units[axis] = field->unit();
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
    cells.push_back(ties_of(group));
    cells.push_back(Value{group.ranked});
    cells.push_back(group.winner ? Value{group.winner->trial_id} : Value{});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string best_text(std::span<const Field> differ, std::span<const BestOfGroup> groups,
                      const BestOptions& options, std::size_t width) {
  if (groups.empty()) return "No results yet: `sweep status` shows how far the sweep is.\n";
  std::vector<std::optional<double>> guessed;
  for (const auto& group : groups)
    if (group.winner) guessed.push_back(group.winner->metrics.step_guessed_share);
  std::string out = source_line(options.source) + to_text(best_table(differ, groups, options), width) +
                    rehearsed_line(options.rehearsed) + guessed_line(guessed);
  const BestOfGroup* overall = overall_best(groups, options);
  const bool all = groups.size() <= kPastedGroups;
  std::map<std::string, std::vector<std::string>>
      without;  // the names of groups without a best, by the reason
  for (const auto& group : groups) {
    if (!group.winner)
      without[is_all_pruned(group) ? "all their configurations are pruned (`sweep plan` says why)"
                                   : group.why_none]
          .push_back(group_name(group, options));
    if (group.winner && (all || &group == overall))
      out += fmt::format("\n{}{}", winner_notes(group, options), as_grid_yaml(*group.winner, options.form));
  }
  std::size_t with = groups.size();
  for (const auto& [why, names] : without) out += without_best(names, why), with -= names.size();
  if (!all && overall != nullptr)
    out += fmt::format(
        "\nThe best of {} groups that have a result is above; --yaml prints the configuration of each.\n",
        with);
  return out;
}

std::string best_json(std::span<const BestOfGroup> groups, const BestOptions& options) {
  auto out = nlohmann::json::array();
  for (const auto& group : groups) {
    nlohmann::json key = nlohmann::json::object();
    for (std::size_t i = 0; i < group.key.size(); ++i) key[options.group_by[i]] = value_json(group.key[i]);
    nlohmann::json entry = {{"group", key},
                            {"metric", options.metric},
                            {"ranked", group.ranked},
                            {"not_run", group.not_run},
                            {"not_ok", group.not_ok},
                            {"pruned", group.pruned},
                            {"not_measured", group.not_measured},
                            {"stopped_early", group.stopped_early},
                            {"too_full", group.too_full},
                            {"unknown_headroom", group.unknown_headroom}};
    const BestSource& of = options.source;
    entry["sweep"] = of.sweep;
    entry["confirms"] = of.confirms.empty() ? nlohmann::json(nullptr) : nlohmann::json(of.confirms);
    entry["allocations"] = of.confirms.empty() ? nlohmann::json(nullptr) : nlohmann::json(of.allocations);
    entry["rehearsed"] = options.rehearsed;
    entry["winner"] = group.winner ? json_of(*group.winner) : nlohmann::json(nullptr);
    entry["value"] = group.winner ? nlohmann::json(group.value) : nlohmann::json(nullptr);
    entry["interval"] =
        group.interval ? nlohmann::json{group.interval->low, group.interval->high} : nlohmann::json(nullptr);
    entry["prices"] =
        group.winner ? price_sentences(std::span(&*group.winner, 1), today()) : std::vector<std::string>{};
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

}  // namespace sweep::answers
