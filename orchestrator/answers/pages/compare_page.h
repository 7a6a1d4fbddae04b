// The page of `sweep compare`: results side by side, or two sweeps: what differs, each metric with its direction and its
// ratio, where the time goes.
#pragma once
#include <string>

#include "orchestrator/answers/statistics/compare.h"
#include "orchestrator/answers/statistics/side_by_side.h"

namespace sweep::answers {

std::string side_by_side_html(const SideBySide&, const std::string& sweep, const std::string& made);

struct ComparedSweeps {
  std::string a, b, a_options, b_options;  // names, and the stored options
  std::string machines;                    // machine_differences()
  std::string made;
};
std::string comparison_html(const ComparedSweeps&, const Comparison&, const CompareOptions&);

}  // namespace sweep::answers
