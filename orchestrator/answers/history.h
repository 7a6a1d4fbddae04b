// History: the steps behind a trial's answer as named values, as experiment trackers draw them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/store/store.h"
#include "schema/result_row.h"

namespace sweep::answers {

struct HistoryStep {
  i64 step_ns = 0;
  std::vector<std::pair<std::string, double>> values{};  // what was not measured has no value
};
// Of the final attempt; empty: there is none, or no steps were kept of it.
Expected<std::vector<HistoryStep>> history(store::Store&, i64 sweep, const ResultRow&);

}  // namespace sweep::answers
