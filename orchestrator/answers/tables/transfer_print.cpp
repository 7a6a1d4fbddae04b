#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/statistics/transfer.h"
#include "orchestrator/answers/tables/tables.h"
#include "schema/values.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kFurthest = 5;

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

std::string names_of(std::span<const Field> fields) {
  std::string out;
  for (const Field& field : fields)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", safe_text(field.name()));
  return out;
}

// The matched axes that vary within some cell.
std::vector<Field> shown_axes(const Transfer& found) {
  std::vector<ResultRow> rows;
  for (const auto& each : found.shared) rows.push_back(*each.a);
  std::vector<Field> out = varying(rows);
  std::erase_if(out, [&](const Field& field) {
    const auto named = [&](const Field& other) { return other.name() == field.name(); };
    return std::ranges::none_of(found.match, named) || std::ranges::any_of(found.by, named);
  });
  return out;
}

std::string end_of(const ResultRow& row) {
  return row.state == State::kFinished ? std::string(to_string(row.outcome)) : "not run";
}

std::string cost_text(const Transfer& found, const TransferCell& cell) {
  if (!cell.choice) return "A ran nothing";
  if (cell.regret)
    return percent(*cell.regret) + (cell.within_noise && *cell.regret > 0 ? " (within noise)" : "");
  return end_of(*found.shared[*cell.choice].b) + " in B";
}

Table cells_text(const Transfer& found, std::span<const Field> shown) {
  Table out;
  for (const Field& field : found.by) add_head(out, field);
  for (const char* name : {"shared", "measured", "Spearman", "choosing by A costs", "random choice costs",
                           "B / A", "best by A", "best in B"})
    out.columns.emplace_back(name);
  const auto setting = [&](const std::optional<std::size_t>& at) {
    return at ? Value{setting_text(*found.shared[*at].a, shown)} : Value{};
  };
  for (const TransferCell& cell : found.cells) {
    auto& line = out.rows.emplace_back(cell.key);
    line.insert(line.end(), {Value{cell.shared}, Value{cell.measured}});
    line.push_back(cell.spearman ? Value{fmt::format("{:.2f}", *cell.spearman)} : Value{});
    line.emplace_back(cost_text(found, cell));
    line.push_back(cell.regret_of_median ? Value{percent(*cell.regret_of_median)} : Value{});
    line.push_back(cell.ratio ? Value{fmt::format("{:.3g}", *cell.ratio)} : Value{});
    line.push_back(setting(cell.choice)), line.push_back(setting(cell.best));
  }
  return out;
}

std::string fits_text(const Transfer& found) {
  const auto count = [&](Fits fits) { return found.fits[std::size_t(fits)]; };
  const i64 known = count(Fits::kBoth) + count(Fits::kOnlyA) + count(Fits::kOnlyB) + count(Fits::kNeither);
  if (known == 0) return "";
  Table table;
  table.columns = {"fits", "in B", "not in B"};
  table.rows = {{std::string("in A"), count(Fits::kBoth), count(Fits::kOnlyA)},
                {std::string("not in A"), count(Fits::kOnlyB), count(Fits::kNeither)}};
  const i64 agreed = count(Fits::kBoth) + count(Fits::kNeither);
  std::string out =
      fmt::format("\nThey agree on what fits in {} of {}", agreed, counted(known, "configuration"));
  if (count(Fits::kUnknown) > 0)
    out += fmt::format("; {} ended otherwise or have not run", count(Fits::kUnknown));
  if (found.reused > 0)
    out += fmt::format("; {} have one attempt on both sides, which one sweep reused, and are not ranked",
                       found.reused);
  return out + "\n" + to_text(table);
}

std::string axes_text(const Transfer& found, std::size_t width) {
  if (found.axes.empty()) return "";
  Table table;
  table.columns = {"axis", "explains", "pairs", "opposite", "beyond noise", "B / A against the cell's mean"};
  for (const AxisTransfer& each : found.axes) {
    std::string factors;
    for (const auto& [value, factor] : each.factor)
      factors += fmt::format("{}{}: {:.3g}", factors.empty() ? "" : ", ", show(value), factor);
    table.rows.push_back({safe_text(each.axis.name()), percent(each.explains), each.pairs, each.opposite,
                          each.certain, factors});
  }
  return "\nWhere they differ, by axis (pairs: configurations that differ in this axis alone; opposite: A "
         "and B order them differently)\n" +
         to_text(table, width);
}

std::string furthest_text(const Transfer& found, std::span<const Field> shown, std::size_t width) {
  std::vector<const SharedConfiguration*> far;
  for (const auto& each : found.shared)
    if (each.rank_a && *each.rank_a != *each.rank_b) far.push_back(&each);
  std::ranges::stable_sort(far, std::greater<>(),
                           [](const auto* each) { return std::fabs(*each->rank_a - *each->rank_b); });
  if (far.size() > kFurthest) far.resize(kFurthest);
  if (far.empty()) return "";
  Table table;
  for (const Field& field : found.by) add_head(table, field);
  for (const char* name : {"rank in A", "rank in B", "configuration"}) table.columns.emplace_back(name);
  for (const auto* each : far) {
    auto& line = table.rows.emplace_back(found.cells[each->cell].key);
    line.insert(line.end(),
                {Value{fmt::format("{:g}", *each->rank_a)}, Value{fmt::format("{:g}", *each->rank_b)},
                 Value{setting_text(*each->a, shown)}});
  }
  return "\nFurthest apart\n" + to_text(table, width);
}

nlohmann::json outcome_json(const ResultRow& row) {
  return row.state == State::kFinished ? nlohmann::json(to_string(row.outcome)) : nlohmann::json(nullptr);
}

nlohmann::json json_of(std::span<const Field> fields) {
  auto out = nlohmann::json::array();
  for (const Field& field : fields) out.push_back(field.name());
  return out;
}

nlohmann::json values_of(std::span<const Field> fields, const ResultRow& row) {
  auto out = nlohmann::json::object();
  for (const Field& field : fields) out[field.name()] = value_json(field.of(row));
  return out;
}

nlohmann::json cell_json(const Transfer& found, const TransferCell& cell) {
  auto key = nlohmann::json::object();
  for (std::size_t i = 0; i < found.by.size(); ++i) key[found.by[i].name()] = value_json(cell.key[i]);
  const auto trial = [&](const std::optional<std::size_t>& at, bool in_a) {
    return at ? nlohmann::json((in_a ? found.shared[*at].a : found.shared[*at].b)->trial_id)
              : nlohmann::json(nullptr);
  };
  return {{"cell", key},
          {"shared", cell.shared},
          {"measured", cell.measured},
          {"spearman", or_null(cell.spearman)},
          {"regret", or_null(cell.regret)},
          {"regret_within_noise", cell.within_noise},
          {"regret_of_median", or_null(cell.regret_of_median)},
          {"ratio", or_null(cell.ratio)},
          {"best_by_a", trial(cell.choice, true)},
          {"best_by_a_in_b", trial(cell.choice, false)},
          {"best_in_b", trial(cell.best, false)}};
}

}  // namespace

std::string transfer_setting(const Transfer& found, const SharedConfiguration& each) {
  return setting_text(*each.a, shown_axes(found));
}

std::string transfer_text(const Transfer& found, const TransferOptions& options, std::size_t width) {
  const auto shown = shown_axes(found);
  std::string out =
      fmt::format("{} by {}, equal in {}\n", counted(i64(found.shared.size()), "shared configuration"),
                  options.metric, shown.empty() ? "every axis" : names_of(shown));
  for (const auto& [fields, side] : {std::pair(&found.only_a, "A"), std::pair(&found.only_b, "B")})
    if (!fields->empty())
      out += fmt::format("only {} varies {}: its best value of them stands for a configuration\n", side,
                         names_of(*fields));
  out += "\n" + to_text(cells_text(found, shown), width);
  out += fits_text(found) + axes_text(found, width) + furthest_text(found, shown, width);
  if (found.alone_a > 0 || found.alone_b > 0)
    out += fmt::format("\nnot shared: {} only in A, {} only in B\n", counted(found.alone_a, "configuration"),
                       found.alone_b);
  return out;
}

nlohmann::json transfer_json(const Transfer& found, const TransferOptions& options) {
  auto cells = nlohmann::json::array(), axes = nlohmann::json::array(), shared = nlohmann::json::array();
  for (const auto& cell : found.cells) cells.push_back(cell_json(found, cell));
  for (const auto& each : found.axes) {
    auto factors = nlohmann::json::array();
    for (const auto& [value, factor] : each.factor)
      factors.push_back({{"value", value_json(value)}, {"factor", factor}});
    axes.push_back({{"axis", each.axis.name()},
                    {"pairs", each.pairs},
                    {"opposite", each.opposite},
                    {"opposite_beyond_noise", each.certain},
                    {"explains", each.explains},
                    {"factors", factors}});
  }
  const auto named = shown_axes(found);
  for (const auto& each : found.shared)
    shared.push_back({{"trial_a", each.a->trial_id},
                      {"trial_b", each.b->trial_id},
                      {"cell", each.cell},
                      {"axes", values_of(named, *each.a)},
                      {"a", or_null(each.value_a)},
                      {"b", or_null(each.value_b)},
                      {"rank_a", or_null(each.rank_a)},
                      {"rank_b", or_null(each.rank_b)},
                      {"outcome_a", outcome_json(*each.a)},
                      {"outcome_b", outcome_json(*each.b)}});
  const auto count = [&](Fits fits) { return found.fits[std::size_t(fits)]; };
  return {{"metric", options.metric},
          {"matched", json_of(found.match)},
          {"only_a_varies", json_of(found.only_a)},
          {"only_b_varies", json_of(found.only_b)},
          {"only_in_a", found.alone_a},
          {"only_in_b", found.alone_b},
          {"cells", cells},
          {"fits",
           {{"both", count(Fits::kBoth)},
            {"only_a", count(Fits::kOnlyA)},
            {"only_b", count(Fits::kOnlyB)},
            {"neither", count(Fits::kNeither)},
            {"unknown", count(Fits::kUnknown)}}},
          {"axes", axes},
          {"configurations", shared}};
}

Table transfer_table(const Transfer& found, const TransferOptions& options) {
  const auto shown = shown_axes(found);
  Table out;
  for (const Field& field : found.by) out.columns.push_back(field.name());
  for (const Field& field : shown) out.columns.push_back(field.name());
  for (const auto& name :
       {options.metric + "_a", options.metric + "_b", std::string("rank_a"), std::string("rank_b"),
        std::string("outcome_a"), std::string("outcome_b"), std::string("trial_a"), std::string("trial_b")})
    out.columns.push_back(name);
  for (const auto& each : found.shared) {
    auto& line = out.rows.emplace_back(found.cells[each.cell].key);
    for (const Field& field : shown) line.push_back(field.of(*each.a));
    for (const auto& value : {each.value_a, each.value_b, each.rank_a, each.rank_b})
      line.push_back(cell_of(value));
    for (const ResultRow* row : {each.a, each.b})
      line.push_back(row->state == State::kFinished ? Value{std::string(to_string(row->outcome))} : Value{});
    for (const ResultRow* row : {each.a, each.b}) line.emplace_back(row->trial_id);
  }
  return out;
}

}  // namespace sweep::answers
