// Codes of questions to results. The subject is the name or the condition that is wrong.
#pragma once
#include "base/expected.h"

namespace sweep::answers::codes {

inline constexpr ErrorCode kUnknownField{"report.unknown_field"};
inline constexpr ErrorCode kNotAMetric{"report.not_a_metric"};
inline constexpr ErrorCode kNotRanked{"report.not_ranked"};  // neither more nor less of it is better
inline constexpr ErrorCode kBadCondition{"report.bad_condition"};
inline constexpr ErrorCode kNoSuchValue{"report.no_such_value"};  // no configuration has it
inline constexpr ErrorCode kOutOfRange{"report.out_of_range"};

}  // namespace sweep::answers::codes
