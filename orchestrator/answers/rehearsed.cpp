#include "orchestrator/answers/rehearsed.h"

#include <fmt/format.h>

#include <algorithm>

#include "schema/rehearsal.h"

namespace sweep::answers {

std::string rehearsed_banner(bool rehearsed) {
  return rehearsed ? fmt::format("<p class=\"rehearsed\" role=\"note\">{}.</p>\n", kRehearsedNote) : "";
}

std::string rehearsed_line(bool rehearsed) {
  return rehearsed ? fmt::format("{}\n", kRehearsedNote) : "";
}

std::string guessed_line(std::span<const std::optional<double>> shares) {
  std::optional<double> least, most;
  for (const auto& share : shares) {
    if (!share) continue;
    least = std::min(least.value_or(*share), *share), most = std::max(most.value_or(*share), *share);
  }
  if (!least) return "";
  const std::string from = fmt::format("{:.0f}", 100 * *least), to = fmt::format("{:.0f}", 100 * *most);
  return fmt::format(
      "{}{} % of the modelled kernel time is guessed: no kernel that `sweep calibrate --kernels` measured "
      "stands "
      "behind it\n",
      from, from == to ? "" : " to " + to);
}

void mark_rehearsed(Table& table) {
  table.columns.emplace_back("rehearsed");
  for (auto& row : table.rows) row.emplace_back(i64{1});
}

}  // namespace sweep::answers
