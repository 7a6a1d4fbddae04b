// Grouping: which rows of some columns belong together under axes, labels or metrics, in natural order of
// their keys.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "schema/result_columns.h"

namespace sweep::answers {

struct Grouping {
  std::vector<std::vector<Value>> keys;  // ascending; one value per field
  std::vector<std::uint32_t> of;         // the group of each row
};
// The columns hold, coded, every field that is a column, and `labels` where one is a label.
Grouping group_by(const ResultColumns&, std::span<const Field>);

// The value of Field::of for each row.
CodedColumn coded_values(const ResultColumns&, const Field&);

}  // namespace sweep::answers
