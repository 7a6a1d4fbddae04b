#include "orchestrator/answers/tables/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/answers/format.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kGap = 2;            // blanks between columns
constexpr std::size_t kShortestText = 12;  // text columns are cut down to this, not further

// A table whose cells are text already.
struct Sheet {
  struct Head {
    std::string title;
    bool right = true;  // numbers
    std::size_t width = 0;
    std::string unit = {};
  };
  std::vector<Head> heads;
  std::vector<std::vector<std::string>> rows;
};

double largest(const Table& table, std::size_t column) {
  double out = 0;
  for (const auto& row : table.rows) out = std::max(out, std::fabs(number(row[column]).value_or(0)));
  return out;
}

// A figure that is shown beside the column's own has its unit: rehearsed_allocated_bytes.
const Column* column_of(const std::string& key) {
  const Column* column = find_column(key);
  constexpr std::string_view kRehearsed = "rehearsed_";
  return column || !key.starts_with(kRehearsed) ? column
                                                : find_column("peak_" + key.substr(kRehearsed.size()));
}

// "peak_allocated_bytes" in GiB reads "peak_allocated GiB": the unit replaces the suffix that spells it.
std::string title_of(const std::string& key, const Column* column, const Scale& scale) {
  if (!column || column->role == Role::kIdentity || scale.unit.empty()) return key;
  if (column->role == Role::kAxis && column->unit != "bytes") return key;
  std::string name = key;
  for (const std::string_view suffix : {"_bytes", "_ms"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  return fmt::format("{} [{}]", name, scale.unit);
}

// A column that columns.h does not know, with the unit that the table has for it: "pause [ms]".
std::string title_with(const Table& table, const std::string& key) {
  const auto unit = table.units.find(key);
  return safe_text(unit == table.units.end() ? key : fmt::format("{} [{}]", key, unit->second));
}

Sheet sheet_of(const Table& table, bool humanize) {
  Sheet sheet;
  for (const std::string& key : table.columns) sheet.heads.push_back({safe_text(key), true, 0, ""});
  sheet.rows.resize(table.rows.size());
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column* column = humanize ? column_of(table.columns[c]) : nullptr;
    const Scale scale = column ? scale_for(column->unit, largest(table, c)) : Scale{};
    if (column)
      sheet.heads[c].title = title_of(table.columns[c], column, scale), sheet.heads[c].unit = scale.unit;
    else if (humanize)
      sheet.heads[c].title = title_with(table, table.columns[c]);
    sheet.heads[c].width = display_width(sheet.heads[c].title);
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      const Value& value = table.rows[r][c];
      if (std::holds_alternative<std::string>(value)) sheet.heads[c].right = false;
      sheet.rows[r].push_back(humanize && column ? show(value, scale) : rounded(value));
      sheet.heads[c].width = std::max(sheet.heads[c].width, display_width(sheet.rows[r].back()));
    }
  }
  return sheet;
}

std::size_t total_width(const Sheet& sheet) {
  std::size_t out = sheet.heads.empty() ? 0 : kGap * (sheet.heads.size() - 1);
  for (const auto& head : sheet.heads) out += head.width;
  return out;
}

// Cuts text columns, widest first, then drops columns from the right; returns the titles of those dropped.
std::vector<std::string> squeeze(Sheet& sheet, std::size_t width) {
  std::vector<std::string> dropped;
  for (;;) {
    const std::size_t total = total_width(sheet);
    if (total <= width) return dropped;
    Sheet::Head* widest = nullptr;
    for (auto& head : sheet.heads) {
      const std::size_t floor = std::max(kShortestText, display_width(head.title));
      if (!head.right && head.width > floor && (!widest || head.width > widest->width)) widest = &head;
    }
    if (widest) {
      const std::size_t floor = std::max(kShortestText, display_width(widest->title));
      widest->width = std::max(floor, widest->width - std::min(widest->width, total - width));
    } else if (sheet.heads.size() > 1) {
      dropped.insert(dropped.begin(), sheet.heads.back().title);
      sheet.heads.pop_back();
      for (auto& row : sheet.rows) row.pop_back();
    } else {
      return dropped;
    }
  }
}

std::string padded(const std::string& cell, const Sheet::Head& head) {
  const std::string cut = fit(cell, head.width);
  const std::string blanks(head.width - std::min(head.width, display_width(cut)), ' ');
  return head.right ? blanks + cut : cut + blanks;
}

std::string line(const Sheet& sheet, const std::vector<std::string>& cells) {
  std::string out;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) out.append(kGap, ' ');
    out += padded(cells[c], sheet.heads[c]);
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out + '\n';
}

std::string text_of(Sheet sheet, std::size_t width) {
  std::vector<std::string> dropped;
  if (width > 0) dropped = squeeze(sheet, width);
  std::vector<std::string> titles, rules;
  for (const auto& head : sheet.heads) {
    titles.push_back(head.title);
    std::string rule;
    for (std::size_t i = 0; i < head.width; ++i) rule += "─";
    rules.push_back(rule);
  }
  std::string out = line(sheet, titles) + line(sheet, rules);
  for (const auto& row : sheet.rows) out += line(sheet, row);
  if (!dropped.empty()) out += fmt::format("not shown for want of width: {}\n", fmt::join(dropped, ", "));
  return out;
}

void add_column(Table& table, std::span<const ResultRow> rows, const Field& field) {
  if (std::find(table.columns.begin(), table.columns.end(), field.name()) != table.columns.end()) return;
  add_head(table, field);
  for (std::size_t r = 0; r < table.rows.size(); ++r) table.rows[r].push_back(field.of(rows[r]));
}

bool any_value(std::span<const ResultRow> rows, const Field& field) {
  return std::any_of(rows.begin(), rows.end(), [&](const ResultRow& r) { return field.of(r).index() != 0; });
}

}  // namespace

Expected<Table> select(std::span<const ResultRow> rows, const TableOptions& options) {
  std::vector<Field> shown = varying(rows);
  std::vector<Field> always, metrics;
  for (const std::string& name : options.always) {
    SWEEP_GET(auto field, Field::resolve(name, rows));
    always.push_back(field);
  }
  for (const std::string& name : options.metrics) {
    SWEEP_GET(auto field, Field::resolve(name, rows));
    metrics.push_back(field);
  }
  if (options.max_rows > 0) rows = rows.first(std::min(rows.size(), options.max_rows));
  Table table;
  table.rows.resize(rows.size());
  if (options.trial_id) add_column(table, rows, Field(*find_column("trial")));
  for (const Field& field : always) add_column(table, rows, field);
  for (const Field& field : shown) add_column(table, rows, field);
  if (options.outcome) add_column(table, rows, Field(*find_column("outcome")));
  const bool padding = any_padding(rows);
  for (const Field& field : metrics) {
    if (any_value(rows, field) && (padding || !field.name().starts_with("useful_")))
      add_column(table, rows, field);
  }
  const Field reason(*find_column("reason"));
  if (options.outcome && any_value(rows, reason)) add_column(table, rows, reason);
  return table;
}

void add_head(Table& table, const Field& field) {
  table.columns.push_back(field.name());
  if (field.is_label() && !field.unit().empty()) table.units[field.name()] = field.unit();
}

std::string to_text(const Table& table, std::size_t width) {
  return text_of(sheet_of(table, true), width);
}
std::string to_text_raw(const Table& table, std::size_t width) {
  return text_of(sheet_of(table, false), width);
}

std::string to_markdown(const Table& table) {
  const Sheet sheet = sheet_of(table, true);
  const auto cell = [](const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '<' || c == '[') out += '\\';
      out += c;
    }
    return out;
  };
  std::string head = "|", rule = "|", body;
  for (const auto& h : sheet.heads) {
    head += fmt::format(" {} |", cell(h.title));
    rule += h.right ? " ---: |" : " --- |";
  }
  for (const auto& row : sheet.rows) {
    body += "|";
    for (const auto& text : row) body += fmt::format(" {} |", cell(text));
    body += "\n";
  }
  return head + "\n" + rule + "\n" + body;
}

ShownTable shown_cells(const Table& table) {
  Sheet sheet = sheet_of(table, true);
  ShownTable out;
  for (auto& head : sheet.heads) {
    out.numbers.push_back(head.right);
    out.units.push_back(std::move(head.unit));
    out.heads.push_back(std::move(head.title));
  }
  out.rows = std::move(sheet.rows);
  return out;
}

}  // namespace sweep::answers
