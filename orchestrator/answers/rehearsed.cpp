#include "orchestrator/answers/rehearsed.h"

#include <fmt/format.h>

#include "schema/rehearsal.h"

namespace sweep::answers {

std::string rehearsed_banner(bool rehearsed) {
  return rehearsed ? fmt::format("<p class=\"rehearsed\" role=\"note\">{}.</p>\n", kRehearsedNote) : "";
}

std::string rehearsed_line(bool rehearsed) {
  return rehearsed ? fmt::format("{}\n", kRehearsedNote) : "";
}

void mark_rehearsed(Table& table) {
  table.columns.emplace_back("rehearsed");
  for (auto& row : table.rows) row.emplace_back(i64{1});
}

}  // namespace sweep::answers
