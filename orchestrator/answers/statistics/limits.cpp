#include "orchestrator/answers/statistics/limits.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/statistics/best.h"

namespace sweep::answers {
namespace {

constexpr std::string_view kSizes[] = {"micro_batch_size", "seq_len", "grad_accum", "global_batch_size"};

bool ran_out(const ResultRow& row) {
  const auto outcome = cell_outcome_of(row);
  return outcome == CellOutcome::kOom || (outcome == CellOutcome::kPruned && row.rule == "memory");
}

i64 peak_of(const ResultRow& row) {
  return row.metrics.peak_allocated_bytes.value_or(std::numeric_limits<i64>::max());
}

bool fits_more(const ResultRow& row, const ResultRow& other) {
  return std::tuple(-tokens_of_micro_step(row), peak_of(row), std::string_view(row.trial_id)) <
         std::tuple(-tokens_of_micro_step(other), peak_of(other), std::string_view(other.trial_id));
}

MemoryLimit limit_of(const std::vector<const ResultRow*>& rows) {
  MemoryLimit out;
  for (const ResultRow* row : rows)
    if (cell_outcome_of(*row) == CellOutcome::kOk && (!out.fits || fits_more(*row, *out.fits)))
      out.fits = row;
  for (const ResultRow* row : rows) {
    if (!ran_out(*row) || (out.fits && tokens_of_micro_step(*row) <= tokens_of_micro_step(*out.fits)))
      continue;
    if (!out.fails || tokens_of_micro_step(*row) < tokens_of_micro_step(*out.fails)) out.fails = row;
  }
  if (!out.fits || !out.fits->metrics.peak_allocated_bytes) return out;
  if (const auto device = device_memory(*out.fits); device && *device > 0)
    out.headroom = 1 - double(*out.fits->metrics.peak_allocated_bytes) / double(*device);
  return out;
}

}  // namespace

i64 tokens_of_micro_step(const ResultRow& row) {
  return row.trial.micro_batch_size * row.trial.seq_len;
}

std::vector<Field> limit_fields(std::span<const ResultRow> rows) {
  auto out = varying(rows);
  std::erase_if(out, [](const Field& f) { return std::ranges::find(kSizes, f.name()) != std::end(kSizes); });
  return out;
}

std::vector<MemoryLimit> memory_limits(std::span<const ResultRow> rows) {
  const auto fields = limit_fields(rows);
  std::map<std::vector<Value>, std::vector<const ResultRow*>> settings;
  for (const ResultRow& row : rows) {
    std::vector<Value> key;
    for (const Field& field : fields) key.push_back(field.of(row));
    settings[std::move(key)].push_back(&row);
  }
  std::vector<MemoryLimit> out;
  bool seen = false;
  for (const auto& [key, members] : settings) {
    const MemoryLimit limit = limit_of(members);
    if (limit.fits || limit.fails) out.push_back(limit);
    seen |= limit.fails != nullptr;
  }
  if (!seen) return {};
  std::ranges::stable_sort(out, std::greater<>(), [](const MemoryLimit& limit) {
    return std::pair(limit.fits ? tokens_of_micro_step(*limit.fits) : 0,
                     limit.fails ? tokens_of_micro_step(*limit.fails) : 0);
  });
  return out;
}

}  // namespace sweep::answers
