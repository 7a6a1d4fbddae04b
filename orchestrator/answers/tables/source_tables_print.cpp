#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/tables/source_tables.h"

namespace sweep::answers {
namespace {

bool is_factor(std::string_view column) {
  return column == "times_before" || column == "times_first";
}

std::string head_for_people(const std::string& column) {
  static const std::map<std::string, std::string> kHeads = {{"util_mean", "usage [%]"},
                                                            {"scaling", "scaling [%]"},
                                                            {"times_before", "over the stage before"},
                                                            {"times_first", "over the first"}};
  const auto found = kHeads.find(column);
  return found == kHeads.end() ? column : found->second;
}

}  // namespace

Table for_people(const Table& table) {
  const auto at = [&](std::string_view name) {
    return std::size_t(std::find(table.columns.begin(), table.columns.end(), name) - table.columns.begin());
  };
  const std::size_t none = table.columns.size();
  const std::size_t star = at("star"), batch = at("micro_batch_size"), mean = at("util_mean"),
                    sd = at("util_sd");
  const std::size_t scaling = at("scaling");
  Table out;
  out.units = table.units;
  for (std::size_t c = 0; c < none; ++c) {
    if (c != star && c != sd) out.columns.push_back(head_for_people(table.columns[c]));
  }
  for (const auto& row : table.rows) {
    auto& line = out.rows.emplace_back();
    for (std::size_t c = 0; c < none; ++c) {
      if (c == star || c == sd) continue;
      const bool starred = c == batch && star < none && row[star].index() != 0;
      const auto value = number(row[c]);
      if (starred) {
        line.emplace_back(fmt::format("{} {}", show(row[c]), kCheapestMark));
      } else if (c == mean && value) {
        const auto spread = number(row[sd]);
        line.emplace_back(spread ? fmt::format("{:.1f} ± {:.1f}", *value, *spread)
                                 : fmt::format("{:.1f}", *value));
      } else if (is_factor(table.columns[c]) && value) {
        line.emplace_back(significant(*value) + "×");
      } else if (c == scaling && value) {
        line.emplace_back(fmt::format("{:.1f}", *value * 100));
      } else {
        line.push_back(row[c]);
      }
    }
  }
  // A column without any value is left out.
  for (std::size_t c = out.columns.size(); c-- > 0;) {
    if (std::any_of(out.rows.begin(), out.rows.end(), [&](const auto& r) { return r[c].index() != 0; }))
      continue;
    if (out.rows.empty()) break;
    out.columns.erase(out.columns.begin() + std::ptrdiff_t(c));
    for (auto& row : out.rows) row.erase(row.begin() + std::ptrdiff_t(c));
  }
  return out;
}

}  // namespace sweep::answers
