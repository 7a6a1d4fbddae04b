// The page of `sweep compare`: results side by side, or sweeps against the first one: what differs, each metric with its direction and its
// ratio, where the time goes.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/compare_sides.h"
#include "orchestrator/answers/statistics/side_by_side.h"
#include "schema/sweep_options.h"

namespace sweep::answers {

std::string side_by_side_html(const SideBySide&, const std::string& sweep, const std::string& made);

struct ComparedSweeps {
  std::vector<std::string> names;  // A first, here and below
  std::vector<SweepOptions> options;
  std::string machines;  // machine_differences()
  std::string made;
};
ComparedSweeps compared_sweeps(std::span<const CompareSide>, std::string made);
// One comparison for each sweep but A.
std::string comparison_html(const ComparedSweeps&, std::span<const Comparison>, const CompareOptions&);

}  // namespace sweep::answers
