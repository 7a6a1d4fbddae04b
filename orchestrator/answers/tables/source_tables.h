// Source table: the tables in which published benchmarks print their results, made from a sweep's rows:
// tokens per hour and dollar by context and batch, the batch table with its star, the best by node count, the
// largest batch of each sharding method, the largest model of each setting, what each stage of a grid is worth.
// docs/answers.md says whose they are.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

enum class SourceTable { kCost, kBatch, kScaling, kMaxBatch, kMaxModel, kStages };
// cost, batch, scaling, max-batch, max-model, stages
std::optional<SourceTable> source_table_from(std::string_view name);
std::span<const std::string_view> source_table_names();

struct SourceTableOptions {
  std::optional<double> epoch_tokens = std::nullopt;  // max-batch: adds epoch_s, the time for so many tokens
  std::string metric = "tokens_per_s_gpu";  // stages: what they are compared by; it has a better and a worse
};

struct SourceTableAnswer {
  Table table;                     // public column names, values as stored: for CSV and JSON
  std::vector<std::string> notes;  // sentences for people
};
// Error: no such column can be made from these rows. No results give a table without rows and a note.
SourceTableAnswer source_table(SourceTable, std::span<const ResultRow>, const SourceTableOptions& = {});

// The mark of the cheapest batch of its context, in column `star`.
inline constexpr std::string_view kCheapestMark = "★";
// The same table as people read it: mean and deviation in one cell, the star beside its batch.
Table for_people(const Table&);

// The best configuration of each node count.
struct ScalingPoint {
  i64 nodes = 0;
  const ResultRow* best = nullptr;   // null: none ended ok with a rate
  std::optional<double> efficiency;  // useful tokens/s per rank over that of the smallest node count measured
  i64 ok = 0, total = 0;             // configurations behind it
};
struct ScalingCurve {
  std::vector<Value> key;  // model, hardware, seq_len
  std::vector<ScalingPoint> points;
};
std::vector<ScalingCurve> scaling_curves(std::span<const ResultRow> rows);

}  // namespace sweep::answers
