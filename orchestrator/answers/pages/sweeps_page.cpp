#include "orchestrator/answers/pages/sweeps_page.h"

#include <algorithm>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/page_frame.h"
#include "orchestrator/answers/pages/report_parts.h"

namespace sweep::answers {

std::string sweeps_html(Table sweeps, std::span<const std::string> links, const std::string& db) {
  constexpr int kAgainS = 5;
  for (std::string& column : sweeps.columns) std::ranges::replace(column, '_', ' ');
  return framed_page(
      {.window = "sweeps of " + db,
       .heading = "Sweeps of " + db,
       .body = section("sweeps", "Sweeps", parts::html_table(std::move(sweeps), Names({}), links)),
       .again_s = kAgainS});
}

}  // namespace sweep::answers
