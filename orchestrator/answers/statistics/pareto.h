// Pareto: the results that no other beats in two figures at once.
#pragma once
#include <functional>
#include <vector>

#include "schema/result_row.h"

namespace sweep::answers {

// A figure of a result where less is better; what is not finite does not count.
using Figure = std::function<double(const ResultRow&)>;

// Every result for which no other has as little of both and less of one, from the least x to the least y. Of equal
// results the first stands for all.
std::vector<const ResultRow*> pareto_front(std::vector<const ResultRow*> rows, const Figure& x,
                                           const Figure& y);

}  // namespace sweep::answers
