// Suggest: defaults for batch, context and recomputation, by what was measured, as YAML for `base`.
#pragma once
#include <string>
#include <vector>

#include "schema/result_row.h"

namespace sweep::answers {

// One part for each model, hardware and number of ranks: the fastest that ran. Empty: nothing ran.
std::string suggestions(std::vector<ResultRow>);

}  // namespace sweep::answers
