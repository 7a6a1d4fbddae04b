#include "orchestrator/cli/heatmap_options.h"

namespace sweep::cli {

void add_heatmap_options(CLI::App& command, answers::HeatmapOptions& options) {
  command.add_option("--rows", options.rows,
                     "axis of the rows; absent: of the two axes that matter most the one with more values");
  command.add_option("--cols", options.cols, "axis of the columns; absent: the other one");
  command.add_option("--value", options.value = {}, kUsualMetric);
  command.add_option("--by", options.objective,
                     "metric that decides which configuration is best; absent: the value");
}

}  // namespace sweep::cli
