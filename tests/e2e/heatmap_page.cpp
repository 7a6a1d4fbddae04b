// Reads a CSV of results (columns by their public names, quoted fields allowed) and writes the heatmap as
// HTML, SVG and a table of cells: heatmap_page IN.csv ROWS COLS VALUE OUT_PREFIX [QUESTION]
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>

#include "orchestrator/answers/charts/heatmap.h"
#include "schema/columns.h"

namespace {

std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      rows.emplace_back(1);
    } else if (quoted || c != '\r') {
      rows.back().back() += c;
    }
  }
  if (rows.back().size() == 1 && rows.back()[0].empty()) rows.pop_back();
  return rows;
}

void read(sweep::i64& member, const std::string& cell) {
  member = std::stoll(cell);
}
void read(double& member, const std::string& cell) {
  member = std::stod(cell);
}
void read(bool& member, const std::string& cell) {
  member = cell == "true";
}
void read(std::string& member, const std::string& cell) {
  member = cell;
}
template <sweep::AxisChoice Enum>
void read(Enum& member, const std::string& cell) {
  member = sweep::choice_from<Enum>(cell).value();
}
template <class T>
void read(std::optional<T>& member, const std::string& cell) {
  read(member.emplace(), cell);
}

void set(sweep::ResultRow& row, const std::string& key, const std::string& cell) {
  if (cell.empty()) return;
  if (key == "trial") row.trial_id = cell;
  if (key == "model") row.trial.model = cell;
  if (key == "reason") row.reason = cell;
  if (key == "labels") row.trial.labels = cell;
  if (key == "state" && cell == "pending") row.state = sweep::State::kPending;
  if (key == "outcome") row.outcome = sweep::outcome_from(cell).value();
  sweep::for_each_axis(row.trial, [&](const auto& info, const auto&, auto& member) {
    if (info.key == key) read(member, cell);
  });
  sweep::for_each_metric(row.metrics, [&](const auto& info, auto& member) {
    if (info.key == key) read(member, cell);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return std::cerr << "usage: heatmap_page IN.csv ROWS COLS VALUE OUT_PREFIX [QUESTION]\n", 2;
  std::ifstream in(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto csv = parse_csv(text);
  std::vector<sweep::ResultRow> rows(csv.empty() ? 0 : csv.size() - 1);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < csv[r + 1].size() && c < csv[0].size(); ++c)
      set(rows[r], csv[0][c], csv[r + 1][c]);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto map = sweep::answers::heatmap(rows, {.rows = argv[2],
                                                  .cols = argv[3],
                                                  .value = argv[4],
                                                  .objective = "",
                                                  .title = "",
                                                  .question = argc > 6 ? argv[6] : ""});
  if (!map) return std::cerr << map.error().message << "\n", 2;
  const std::string prefix = argv[5];
  const std::string html = to_html(*map, rows), svg = to_svg(*map);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::ofstream(prefix + ".html", std::ios::binary) << html;
  std::ofstream(prefix + ".svg", std::ios::binary) << svg;
  std::cout << rows.size() << " rows, " << html.size() << " bytes of HTML, " << took.count() << " s\n";
  // One line per cell: rows, cols, state, value as shown.
  std::ofstream cells(prefix + ".cells.tsv", std::ios::binary);
  const auto largest = std::max(map->high.value_or(0), -map->low.value_or(0));
  const auto scale = sweep::answers::scale_for(map->value.unit(), largest);
  for (const auto& line : cells_table(*map).rows) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      cells << (c == 0 ? "" : "\t") << (c == 3 ? show(line[c], scale) : sweep::answers::show(line[c]));
    }
    cells << "\n";
  }
}
