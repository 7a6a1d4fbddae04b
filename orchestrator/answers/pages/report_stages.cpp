// The report's waterfall: what each stage of the grid is worth.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/answers/charts/chart.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/statistics/stages.h"

namespace sweep::answers::parts {
namespace {

// "no recomputation (1.31×, 2.4× in all)"; of a stage without a value its outcome.
std::string stage_label(const StageResult& stage) {
  if (!stage.value) return fmt::format("{} ({})", stage.name, to_string(cell_outcome_of(*stage.row)));
  if (!stage.over_before) return stage.name;
  return fmt::format("{} ({}×, {}× in all)", stage.name, significant(*stage.over_before),
                     significant(stage.over_first.value_or(1)));
}

// One part of a bar is the value before the change, the other is what the change added. A change that lost something
// has a shorter bar.
std::string waterfall(const StageSeries& series, const Field& metric) {
  double most = 0, before = 0;
  for (const StageResult& stage : series.stages) most = std::max(most, stage.value.value_or(0));
  const Scale scale = scale_for(metric.unit(), most);
  StackedBars bars{.title = "What each stage is worth",
                   .unit = scale.unit,
                   .names = {"as before", "by this change"},
                   .bars = {}};
  for (const StageResult& stage : series.stages) {
    const double now = stage.value.value_or(0) * scale.factor;
    const double kept = stage.over_before ? std::min(now, before) : now;
    bars.bars.push_back({stage_label(stage), {kept, now - kept}});
    if (stage.value) before = now;
  }
  return fmt::format("<div class=\"chart\">{}</div>\n", to_svg(bars));
}

}  // namespace

std::string stages(const ReportInput& in) {
  const Field metric(*find_column(in.metric));
  std::string out;
  for (const StageSeries& series : stage_series(in.rows, metric)) {
    if (!series.name.empty()) out += fmt::format("<h3>{}</h3>\n", escape_xml(series.name));
    out += waterfall(series, metric);
  }
  if (out.empty()) return out;
  return out + fmt::format(
                   "<p class=\"small\">The bars are {} of each stage, which keeps the changes of those above "
                   "it. In brackets "
                   "its factor over the stage before, and over the first.</p>\n",
                   escape_xml(Names(in.rows).of(in.metric)));
}

}  // namespace sweep::answers::parts
