#include "orchestrator/answers/statistics/batch_curve.h"

#include <algorithm>
#include <map>

#include "orchestrator/answers/format.h"
#include "schema/labels.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

constexpr std::string_view kBatchAxes[] = {"micro_batch_size", "grad_accum", "global_batch_size"};

// Ok before out of memory before any other end; of one kind as every answer ranks, an absent rate last.
bool says_more(const ResultRow& a, const ResultRow& b) {
  const auto rank = [](const ResultRow& r) {
    return r.outcome == Outcome::kOk ? 0 : r.outcome == Outcome::kOom ? 1 : 2;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return goes_before(Better::kHigher, a, useful_rate(a.metrics).value_or(-1), b,
                     useful_rate(b.metrics).value_or(-1));
}

bool was_run(const ResultRow& row) {
  return row.state == State::kFinished && row.outcome != Outcome::kPruned &&
         row.outcome != Outcome::kUnsupported && row.outcome != Outcome::kCancelled;
}

void find_star(BatchCurve& curve) {
  std::optional<std::size_t> before;
  bool unknown = false;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const ResultRow& row = *curve.points[i].row;
    const i64 batch = curve.points[i].batch;
    if (row.outcome == Outcome::kOom) {
      if (!curve.oom_at) curve.oom_at = batch;
      continue;
    }
    if (row.outcome != Outcome::kOk) continue;
    curve.largest = i;
    const auto& retries = row.metrics.alloc_retries;
    unknown |= !retries && !curve.oom_at;
    if (retries.value_or(0) > 0 && !curve.retries_from) curve.retries_from = batch;
    if (!curve.retries_from && !curve.oom_at) before = i;
  }
  if (!curve.largest)
    curve.why_no_star = "no batch ended ok";
  else if (unknown)
    curve.why_no_star = "cudaMalloc retries were not measured";
  else if (!curve.retries_from && !curve.oom_at)
    curve.why_no_star =
        "no limit was reached: even the largest batch had neither retries nor an out-of-memory error";
  else if (!before)
    curve.why_no_star = "already the smallest batch tried had retries or ran out of memory";
  else
    curve.star = before;
}

}  // namespace

std::vector<Field> setting_fields(std::span<const ResultRow> rows) {
  std::vector<Field> out = varying(rows);
  std::erase_if(out, [](const Field& f) {
    return std::find(std::begin(kBatchAxes), std::end(kBatchAxes), f.name()) != std::end(kBatchAxes);
  });
  return out;
}

std::optional<i64> micro_batch_of(const Trial& trial) {
  if (!knows_axis(trial.labels, "micro_batch_size")) return std::nullopt;
  return trial.micro_batch_size;
}

std::vector<BatchCurve> batch_curves(std::span<const ResultRow> rows, std::span<const Field> setting,
                                     SizeOf size_of) {
  std::map<std::vector<Value>, std::map<i64, const ResultRow*>, ValuesLess> settings;
  for (const ResultRow& row : rows) {
    const auto size = size_of(row.trial);
    if (!was_run(row) || !size) continue;
    std::vector<Value> key;
    for (const Field& field : setting) key.push_back(field.of(row));
    const ResultRow*& kept = settings[std::move(key)][*size];
    if (!kept || says_more(row, *kept)) kept = &row;
  }
  std::vector<BatchCurve> out;
  for (const auto& [key, points] : settings) {
    BatchCurve& curve = out.emplace_back();
    curve.key = key;
    for (const auto& [batch, row] : points) curve.points.push_back({batch, row});
    find_star(curve);
  }
  return out;
}

}  // namespace sweep::answers
