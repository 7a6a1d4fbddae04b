// Transfer: how far the order of configurations under one workload (A) holds under another (B): rank
// correlation, what choosing by A costs in B, agreement on what fits, and the axes by which the two differ.
#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

struct TransferOptions {
  std::string metric = "tokens_per_s_gpu";
  std::vector<std::string> by = {"model", "nodes"};  // each combination of their values is ranked by itself
  std::vector<std::string> match =
      {};  // two rows equal in these are one configuration; empty: in the axes that both know
};

// The result by side: it ran, or it ended as oom or was pruned for memory. kUnknown: a side ended in another
// way.
enum class Fits { kBoth, kOnlyA, kOnlyB, kNeither, kUnknown };

struct SharedConfiguration {
  const ResultRow* a = nullptr;
  const ResultRow* b = nullptr;
  std::size_t cell = 0;
  std::optional<double> value_a, value_b;  // values of the metric, if that side ran
  std::optional<double> rank_a, rank_b;    // among those of the cell that ran on both sides; 1 is best
  Fits fits = Fits::kUnknown;
  bool measured() const { return value_a && value_b; }
};

struct TransferCell {
  std::vector<Value> key;  // values of TransferOptions::by
  i64 shared = 0, measured = 0;
  std::optional<double> spearman;
  std::optional<std::size_t> choice, best;  // configurations: the best by A, the best in B
  // Loss of the choice in B against B's best; nullopt: the choice did not run in B.
  std::optional<double> regret;
  std::optional<double>
      regret_of_median;         // the same of B's median configuration: what choosing blindly costs
  bool within_noise = false;    // the two differ by less than their 95 % intervals tell apart
  std::optional<double> ratio;  // median of B / A
};

// How one axis moves the two workloads. Axes that follow from the others (grad_accum, ...) are left out.
struct AxisTransfer {
  Field axis;
  i64 pairs = 0;        // pairs of configurations of a cell that differ in this axis alone
  i64 opposite = 0;     // the pairs that A and B order oppositely
  i64 certain = 0;      // the opposite pairs beyond the noise of both
  double explains = 0;  // share of the variance of log(B / A) within cells that this axis accounts for
  std::vector<std::pair<Value, double>> factor = {};  // value -> B / A against the mean of the cell
};

struct Transfer {
  std::vector<Field> by, match;
  std::vector<Field> only_a,
      only_b;  // axes that vary on one side and are unknown on the other: its best over them counts
  std::vector<SharedConfiguration> shared;  // configurations in A's order
  std::vector<TransferCell> cells;          // ascending by key
  std::array<i64, 5> fits{};                // index: Fits
  std::vector<AxisTransfer> axes;           // the axis that explains most first
  i64 alone_a = 0, alone_b = 0;             // configurations that the other side lacks
  i64 reused = 0;  // configurations that both have from one attempt: they have no values here
};

// The rows must outlive the answer. Error: an unknown name, or no configuration in common; it names the axes
// that differ.
Expected<Transfer> transfer(std::span<const ResultRow> a, std::span<const ResultRow> b,
                            const TransferOptions&);

// Fills in Transfer::axes.
void attribute_to_axes(Transfer&, const TransferOptions&);

// Values as one text: equal where people would call the values equal. Models are their dimensions, whatever
// they are called, or their names, for imports that have no dimensions.
enum class ModelKey { kDimensions, kName };
std::string key_text(const ResultRow&, std::span<const Field>, ModelKey = ModelKey::kDimensions);

// The views: a picture, text, JSON, a table.
struct TransferNames {
  std::string a, b;
};
// Each shared configuration by its value in A and in B, as shares of the best of its cell. On the diagonal both agree;
// a star is what A would choose.
std::string transfer_svg(const Transfer&, const TransferOptions&, const TransferNames&);

std::string transfer_text(const Transfer&, const TransferOptions&, std::size_t width);
nlohmann::json transfer_json(const Transfer&, const TransferOptions&);
Table transfer_table(const Transfer&, const TransferOptions&);
// "MBS4 ZeRO3 recompute=full": what tells a shared configuration from the others of its cell.
std::string transfer_setting(const Transfer&, const SharedConfiguration&);

}  // namespace sweep::answers
