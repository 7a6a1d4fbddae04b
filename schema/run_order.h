// The order in which the trials of a sweep are run and listed: by their place in the run order that the plan made; of equal places,
// the one that was stored first. An allocation takes those of most nodes first (WorkQueue::pending).
#pragma once
#include <compare>
#include <string_view>
#include <vector>

#include "schema/plan_entry.h"

namespace sweep {

struct RunPlace {
  i64 place = 0;
  i64 stored = 0;  // grows with each entry that a store takes; 0 for entries that are in no store
  friend auto operator<=>(const RunPlace&, const RunPlace&) = default;
};

// The same for SQL, where `p` is the row of plan_entry.
inline constexpr std::string_view kRunOrderSql = "p.place, p.key";

inline RunPlace run_place(const PlanEntry& entry) {
  return {entry.order};
}
void put_in_run_order(std::vector<PlanEntry>& entries);

}  // namespace sweep
