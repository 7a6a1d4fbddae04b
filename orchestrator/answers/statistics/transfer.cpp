#include "orchestrator/answers/statistics/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "schema/codec.h"
#include "schema/labels.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kNamedValues = 3;

bool ran(const ResultRow& row) {
  return row.state == State::kFinished && row.outcome == Outcome::kOk;
}

// nullopt: neither, by how it ended.
std::optional<bool> fits(const ResultRow& row) {
  if (row.state != State::kFinished) return std::nullopt;
  if (row.outcome == Outcome::kOk) return true;
  if (row.outcome == Outcome::kOom || (row.outcome == Outcome::kPruned && row.rule == "memory")) return false;
  return std::nullopt;
}

Fits fits_of(const ResultRow& a, const ResultRow& b) {
  const auto in_a = fits(a), in_b = fits(b);
  if (!in_a || !in_b) return Fits::kUnknown;
  return *in_a ? (*in_b ? Fits::kBoth : Fits::kOnlyA) : (*in_b ? Fits::kOnlyB : Fits::kNeither);
}

// The built-in step uses every axis. What a command uses is known from its grid alone: an axis counts where
// it was given another value than the default. What ranks it runs on holds for every command.
bool knows(std::span<const ResultRow> rows, const Column& axis) {
  static const std::set<std::string_view> kOfRanks = {"hardware", "nodes", "gpus_per_node", "dp", "tp",
                                                      "pp",       "cp"};
  if (axis.key == "workload") return false;
  const bool commands = std::ranges::any_of(
      rows, [](const ResultRow& row) { return row.trial.workload == Workload::kCommand; });
  if (!commands || kOfRanks.contains(axis.key)) return true;
  const Value unset = axis.key == "model" ? Value{std::string()} : axis.default_value;
  return std::ranges::any_of(rows, [&](const ResultRow& row) {
    const Value value = axis.get(row);
    return value.index() != 0 && value != unset;
  });
}

std::set<std::string> labels_of(std::span<const ResultRow> rows) {
  std::set<std::string> out, texts;
  for (const ResultRow& row : rows) texts.insert(row.trial.labels);
  for (const auto& text : texts) {
    const auto labels = label_members(text);
    for (const auto& item : labels.items())
      if (!find_column(item.key()) && is_label_name(item.key())) out.insert(item.key());
  }
  return out;
}

struct KnownAxes {
  std::vector<Field> both, only_a, only_b;
};

KnownAxes known_axes(std::span<const ResultRow> a, std::span<const ResultRow> b) {
  KnownAxes out;
  const auto sort_in = [&](const Field& field, bool in_a, bool in_b) {
    if (in_a && in_b) out.both.push_back(field);
    if (in_a && !in_b) out.only_a.push_back(field);
    if (in_b && !in_a) out.only_b.push_back(field);
  };
  for (const Column& column : columns())
    if (column.role == Role::kAxis) sort_in(Field(column), knows(a, column), knows(b, column));
  const auto of_a = labels_of(a), of_b = labels_of(b);
  std::set<std::string> names = of_a;
  names.insert(of_b.begin(), of_b.end());
  for (const auto& name : names) {
    const auto field = Field::resolve(name, of_a.contains(name) ? a : b);
    if (field) sort_in(*field, of_a.contains(name), of_b.contains(name));
  }
  return out;
}

void keep_varying(std::vector<Field>& fields, std::span<const ResultRow> rows) {
  std::erase_if(fields, [&](const Field& field) {
    return std::ranges::all_of(rows,
                               [&](const ResultRow& row) { return field.of(row) == field.of(rows.front()); });
  });
}

Expected<void> choose_axes(Transfer& out, std::span<const ResultRow> a, std::span<const ResultRow> b,
                           const TransferOptions& options) {
  for (const auto& name : options.by) {
    SWEEP_GET(const auto field, Field::resolve(name, a));
    out.by.push_back(field);
  }
  for (const auto& name : options.match) {
    SWEEP_GET(const auto field, Field::resolve(name, a));
    if (const auto there = Field::resolve(name, b); !there) return tl::unexpected(there.error());
    out.match.push_back(field);
  }
  auto known = known_axes(a, b);
  if (options.match.empty()) {
    out.match = std::move(known.both), out.only_a = std::move(known.only_a),
    out.only_b = std::move(known.only_b);
  } else {
    out.only_a = varying(a), out.only_b = varying(b);
    for (auto* fields : {&out.only_a, &out.only_b})
      std::erase_if(*fields,
                    [&](const Field& field) { return std::ranges::count(options.match, field.name()) > 0; });
  }
  keep_varying(out.only_a, a), keep_varying(out.only_b, b);
  return {};
}

// The best of several rows stands for a configuration: one that ran before one that did not fit.
bool stands_before(const ResultRow& row, const ResultRow& other, const Field& metric) {
  if (ran(row) != ran(other)) return ran(row);
  if (!ran(row)) return fits(row).has_value() && !fits(other).has_value();
  const auto value = number(metric.of(row)), than = number(metric.of(other));
  if (!value || !than) return value.has_value() && !than;
  return ranks_before(find_column(metric.name())->better, *value, row.trial_id, *than, other.trial_id);
}

ModelKey model_key(std::span<const ResultRow> a, std::span<const ResultRow> b) {
  const auto known = [](const ResultRow& row) { return row.trial.spec.layers > 0; };
  return std::ranges::all_of(a, known) && std::ranges::all_of(b, known) ? ModelKey::kDimensions
                                                                        : ModelKey::kName;
}

// Configurations in the order of their first rows.
struct Configurations {
  std::vector<std::string> order;
  std::unordered_map<std::string, const ResultRow*> row;
};

Configurations configurations(std::span<const ResultRow> rows, std::span<const Field> match, ModelKey model,
                              const Field& metric) {
  Configurations out;
  for (const ResultRow& row : rows) {
    auto key = key_text(row, match, model);
    const auto [it, added] = out.row.try_emplace(key, &row);
    if (added)
      out.order.push_back(std::move(key));
    else if (stands_before(row, *it->second, metric))
      it->second = &row;
  }
  return out;
}

std::string some_values(std::span<const ResultRow> rows, const Field& field) {
  std::string out;
  const auto index = index_of(rows, field);
  for (std::size_t i = 0; i < std::min(kNamedValues, index.keys.size()); ++i)
    out += fmt::format("{}{}", i ? ", " : "", show(index.keys[i]));
  return index.keys.size() > kNamedValues ? out + ", ..." : out;
}

// Axes without a value in common, each with some of its values.
Error nothing_shared(std::span<const ResultRow> a, std::span<const ResultRow> b, std::span<const Field> match,
                     ModelKey model) {
  std::string differ;
  for (const Field& field : match) {
    std::set<std::string> in_a;
    for (const ResultRow& row : a) in_a.insert(key_text(row, std::span(&field, 1), model));
    if (std::ranges::none_of(b, [&](const ResultRow& row) {
          return in_a.contains(key_text(row, std::span(&field, 1), model));
        }))
      differ += fmt::format("{}{} (A: {}; B: {})", differ.empty() ? "" : ", ", field.name(),
                            some_values(a, field), some_values(b, field));
  }
  return {fmt::format(
      "A and B have no configuration in common{}{}; --match AXES names the axes that must be equal",
      differ.empty() ? "" : ": they differ in ", differ)};
}

void make_cells(Transfer& out) {
  std::vector<ResultRow> rows;
  std::map<std::vector<Value>, std::vector<std::size_t>, ValuesLess> by_key;
  for (std::size_t i = 0; i < out.shared.size(); ++i) {
    std::vector<Value> key;
    for (const Field& field : out.by) key.push_back(field.of(*out.shared[i].a));
    by_key[key].push_back(i);
  }
  for (const auto& [key, members] : by_key) {
    for (const std::size_t member : members) out.shared[member].cell = out.cells.size();
    out.cells.emplace_back().key = key;
  }
}

// The costs in B of what A would choose. `measured`: places of those that ran on both sides.
void weigh_choice(const Transfer& all, TransferCell& cell, std::span<const std::size_t> measured, bool lower,
                  const std::string& metric) {
  std::vector<double> in_b;
  for (const std::size_t i : measured) in_b.push_back(*all.shared[i].value_b);
  const auto& best = all.shared[*cell.best];
  const auto loss = [&](double value) {
    return lower ? value / *best.value_b - 1 : 1 - value / *best.value_b;
  };
  if (const auto middle = median(in_b)) cell.regret_of_median = std::max(0.0, loss(*middle));
  const auto& choice = all.shared[*cell.choice];
  if (!choice.value_b) return;
  cell.regret = loss(*choice.value_b);
  const auto of_best = interval_of(*best.b, metric), of_choice = interval_of(*choice.b, metric);
  if (!of_best || !of_choice) return;
  const auto change = ratio_change(*best.value_b, *of_best, *choice.value_b, *of_choice);
  constexpr double kSignificant = 0.05;
  cell.within_noise = change && change->p > kSignificant;
}

void fill_cell(Transfer& all, std::size_t number, const std::string& metric) {
  TransferCell& cell = all.cells[number];
  const Better direction = find_column(metric)->better;
  const bool lower = direction == Better::kLower;
  std::vector<std::size_t> measured;
  std::vector<double> a, b, ratios;
  for (std::size_t i = 0; i < all.shared.size(); ++i) {
    const auto& each = all.shared[i];
    if (each.cell != number) continue;
    ++cell.shared;
    const auto* choice = cell.choice ? &all.shared[*cell.choice] : nullptr;
    const auto* best = cell.best ? &all.shared[*cell.best] : nullptr;
    if (each.value_a && (!choice || ranks_before(direction, *each.value_a, each.a->trial_id, *choice->value_a,
                                                 choice->a->trial_id)))
      cell.choice = i;
    if (each.value_b && (!best || ranks_before(direction, *each.value_b, each.b->trial_id, *best->value_b,
                                               best->b->trial_id)))
      cell.best = i;
    if (!each.measured()) continue;
    measured.push_back(i);
    a.push_back(lower ? *each.value_a : -*each.value_a), b.push_back(lower ? *each.value_b : -*each.value_b);
    if (*each.value_a > 0) ratios.push_back(*each.value_b / *each.value_a);
  }
  cell.measured = i64(measured.size());
  cell.spearman = spearman(a, b), cell.ratio = median(ratios);
  const auto rank_a = average_ranks(a), rank_b = average_ranks(b);
  for (std::size_t i = 0; i < measured.size(); ++i)
    all.shared[measured[i]].rank_a = rank_a[i], all.shared[measured[i]].rank_b = rank_b[i];
  if (cell.choice && cell.best) weigh_choice(all, cell, measured, lower, metric);
}

}  // namespace

std::string key_text(const ResultRow& row, std::span<const Field> fields, ModelKey model) {
  std::string out;
  for (const Field& field : fields) {
    const Value value = field.of(row);
    if (field.name() == "model" && model == ModelKey::kDimensions)
      out += dump(to_json(row.trial.spec));
    else if (const auto count = number(value))
      out += fmt::format("{:.17g}", *count);
    else if (const auto* words = std::get_if<std::string>(&value))
      out += dump(nlohmann::json(*words));
    out += '\n';
  }
  return out;
}

Expected<Transfer> transfer(std::span<const ResultRow> a, std::span<const ResultRow> b,
                            const TransferOptions& options) {
  SWEEP_GET(const auto metric, resolve_ranked(options.metric));
  Transfer out;
  if (auto chosen = choose_axes(out, a, b, options); !chosen) return tl::unexpected(chosen.error());
  const ModelKey model = model_key(a, b);
  const auto of_a = configurations(a, out.match, model, metric),
             of_b = configurations(b, out.match, model, metric);
  for (const auto& key : of_a.order) {
    const auto other = of_b.row.find(key);
    if (other == of_b.row.end()) {
      ++out.alone_a;
      continue;
    }
    SharedConfiguration& each = out.shared.emplace_back();
    each.a = of_a.row.at(key), each.b = other->second;
    const bool reused = is_one_attempt(*each.a, *each.b);
    out.reused += reused ? 1 : 0;
    if (ran(*each.a) && !reused) each.value_a = number(metric.of(*each.a));
    if (ran(*each.b) && !reused) each.value_b = number(metric.of(*each.b));
    each.fits = fits_of(*each.a, *each.b);
    ++out.fits[std::size_t(each.fits)];
  }
  out.alone_b = i64(of_b.order.size() - out.shared.size());
  if (out.shared.empty()) return tl::unexpected(nothing_shared(a, b, out.match, model));
  make_cells(out);
  for (std::size_t i = 0; i < out.cells.size(); ++i) fill_cell(out, i, options.metric);
  attribute_to_axes(out, options);
  return out;
}

}  // namespace sweep::answers
