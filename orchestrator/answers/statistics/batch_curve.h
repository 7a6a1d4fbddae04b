// Batch curve: the results of one setting by micro-batch size (or by another size, such as the model's), from the
// smallest to the one that ran out of memory. It finds the star: the largest batch before cudaMalloc retries or an
// out-of-memory error.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

struct BatchPoint {
  i64 batch = 0;
  const ResultRow* row =
      nullptr;  // the best of this batch: ok before anything else, then by useful tokens/s per rank
};

struct BatchCurve {
  std::vector<Value> key;              // values of the setting, one per field
  std::vector<BatchPoint> points;      // ascending, finished and really run
  std::optional<std::size_t> star;     // into points; nullopt: `why_no_star` says why
  std::optional<i64> retries_from;     // the first batch with cudaMalloc retries
  std::optional<i64> oom_at;           // the first batch that ran out of memory
  std::optional<std::size_t> largest;  // the largest that ended ok
  std::string why_no_star;
};

// The axes and labels that tell one setting from another: all that vary, but for the batch's own
// (micro-batch, accumulation, global batch).
std::vector<Field> setting_fields(std::span<const ResultRow> rows);

// nullopt: the trial has no such size, as that of a command that knows no micro-batch.
using SizeOf = std::optional<i64> (*)(const Trial&);
std::optional<i64> micro_batch_of(const Trial&);

// One curve per distinct setting, in natural order; trials without a size and settings of which nothing was run
// are left out.
std::vector<BatchCurve> batch_curves(std::span<const ResultRow> rows, std::span<const Field> setting,
                                     SizeOf = micro_batch_of);

}  // namespace sweep::answers
