#include "schema/run_order.h"

#include <algorithm>
#include <utility>

namespace sweep {

// Entries are large: each is moved once, along the cycles that the new order makes of the old one.
void put_in_run_order(std::vector<PlanEntry>& entries) {
  std::vector<std::pair<RunPlace, std::size_t>> from;  // the index breaks ties
  from.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) from.emplace_back(run_place(entries[i]), i);
  std::ranges::sort(from);
  for (std::size_t start = 0; start < from.size(); ++start) {
    if (from[start].second == start) continue;
    PlanEntry first = std::move(entries[start]);
    std::size_t at = start;
    for (std::size_t next = from[at].second; next != start; next = from[at].second) {
      entries[at] = std::move(entries[next]);
      from[at].second = at, at = next;
    }
    entries[at] = std::move(first), from[at].second = at;
  }
}

}  // namespace sweep
