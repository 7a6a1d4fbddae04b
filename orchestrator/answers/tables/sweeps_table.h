// The sweeps of a database: what `sweep list` prints and the first page of `sweep serve` shows.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/store/store.h"

namespace sweep::answers {

struct ListedSweep {
  store::SweepRow sweep;
  store::Progress counts;
  std::optional<std::string> last_result{};  // when its last result was stored; nullopt: it has none
  std::string run_by{};                      // a sentence; empty: nobody runs it
};
// Says who runs a sweep, or nothing.
using RunBy = std::function<Expected<std::string>(const store::SweepRow&)>;

// Sweeps in the order of SweepBook::sweeps().
Expected<std::vector<ListedSweep>> listed_sweeps(store::Store&, const RunBy&);
Table sweeps_table(std::span<const ListedSweep>);

}  // namespace sweep::answers
