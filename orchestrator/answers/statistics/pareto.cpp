#include "orchestrator/answers/statistics/pareto.h"

#include <algorithm>
#include <cmath>

namespace sweep::answers {

std::vector<const ResultRow*> pareto_front(std::vector<const ResultRow*> rows, const Figure& x,
                                           const Figure& y) {
  std::erase_if(rows,
                [&](const ResultRow* row) { return !std::isfinite(x(*row)) || !std::isfinite(y(*row)); });
  std::ranges::stable_sort(rows, {}, [&](const ResultRow* row) { return std::pair(x(*row), y(*row)); });
  std::vector<const ResultRow*> out;
  for (const ResultRow* row : rows)
    if (out.empty() || y(*row) < y(*out.back())) out.push_back(row);
  return out;
}

}  // namespace sweep::answers
