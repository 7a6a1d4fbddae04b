// A comparison (statistics/compare.h) as a table and as text.
#pragma once
#include <string>

#include "orchestrator/answers/statistics/compare.h"

namespace sweep::answers {

// Pairs as a table, values as stored.
Table compare_table(const Comparison&, const CompareOptions&);
std::string compare_text(const Comparison&, const CompareOptions&, std::size_t width);

}  // namespace sweep::answers
