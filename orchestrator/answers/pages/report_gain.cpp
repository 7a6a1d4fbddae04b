// The gain of the best configuration: over the median, and over what one would try first.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"

namespace sweep::answers::parts {
namespace {

// These follow from the others, or are the machine itself: they make no guess.
constexpr std::string_view kNoGuess[] = {"model", "hardware", "nodes",      "gpus_per_node",    "seq_len",
                                         "dp",    "workload", "grad_accum", "global_batch_size"};

i64 at_default(const ResultRow& row, std::span<const Column* const> axes) {
  return std::ranges::count_if(axes, [&](const Column* c) { return c->get(row) == c->default_value; });
}

// The configuration on the best one's nodes that ran with most axes at their default, then with the smallest
// micro-batch.
const ResultRow* first_guess(const ReportInput& in, const BestOfGroup& group, const BestOptions& options) {
  std::vector<const Column*> axes;
  for (const Field& field : varying(in.rows)) {
    const Column* column = find_column(field.name());
    if (column && std::ranges::find(kNoGuess, column->key) == std::end(kNoGuess)) axes.push_back(column);
  }
  const Trial& best = group.winner->trial;
  const ResultRow* out = nullptr;
  const auto rank = [&](const ResultRow& row) {
    return std::tuple(-at_default(row, axes), row.trial.micro_batch_size, std::string_view(row.trial_id));
  };
  for (const ResultRow& row : in.rows) {
    const CellOutcome outcome = cell_outcome_of(row);
    if ((outcome != CellOutcome::kOk && outcome != CellOutcome::kOom) || !belongs(row, group, options))
      continue;
    if (row.trial.nodes != best.nodes || row.trial.gpus_per_node != best.gpus_per_node) continue;
    if (!out || rank(row) < rank(*out)) out = &row;
  }
  return out;
}

// A factor over what is worse; nullopt: one of the two is not above 0.
std::optional<double> times(double best, double other, bool lower) {
  if (!(best > 0) || !(other > 0)) return std::nullopt;
  return lower ? other / best : best / other;
}

}  // namespace

Gain gain_of(const ReportInput& in, const BestOfGroup& group, const BestOptions& options) {
  const bool lower = lower_is_better(options.metric);
  Gain out;
  if (group.median && group.ranked > 2) out.over_median = times(group.value, *group.median, lower);
  if (group.ranked < 2) return out;
  out.guess = first_guess(in, group, options);
  if (!out.guess) return out;
  out.guess_is_best = out.guess->trial_id == group.winner->trial_id;
  out.guess_ran_out = !out.guess_is_best && cell_outcome_of(*out.guess) == CellOutcome::kOom;
  const auto value = number(find_column(options.metric)->get(*out.guess));
  if (!out.guess_is_best && !out.guess_ran_out && value) out.over_guess = times(group.value, *value, lower);
  return out;
}

std::string gain(const ReportInput& in, const BestOfGroup& group, const BestOptions& options,
                 std::span<const Field> differ) {
  const Field metric(*find_column(options.metric));
  const Gain found = gain_of(in, group, options);
  std::vector<std::string> said;
  if (found.over_median)
    said.push_back(fmt::format("<b>{}×</b> the median of {} measured configurations",
                               significant(*found.over_median), group.ranked));
  if (found.guess_is_best) said.emplace_back("the first guess, all defaults, is the best");
  if (found.guess_ran_out)
    said.push_back(
        fmt::format("the first guess ({}) ran out of memory", escape_xml(name_of(*found.guess, differ))));
  if (found.over_guess) {
    const Value value = metric.of(*found.guess);
    said.push_back(fmt::format("<b>{}×</b> the first guess ({}: {})", significant(*found.over_guess),
                               escape_xml(name_of(*found.guess, differ)),
                               escape_xml(show(value, scale_for(metric.unit(), *number(value))))));
  }
  if (said.empty()) return "";
  return fmt::format("<p class=\"gain\">{}.</p>\n", fmt::join(said, "; "));
}

}  // namespace sweep::answers::parts
