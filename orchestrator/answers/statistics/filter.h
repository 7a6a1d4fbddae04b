// Filter: keeps the rows with certain values of an axis, a label or a metric, as people write it: tp=1,8 or
// nodes=4..64.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

// Every condition must hold. Error: an unknown name, or a condition that no row fulfils; it tells the values
// there are.
Expected<std::vector<ResultRow>> keep_only(std::vector<ResultRow> rows,
                                           std::span<const std::string> conditions);

}  // namespace sweep::answers
