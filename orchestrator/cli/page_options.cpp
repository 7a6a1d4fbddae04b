#include "orchestrator/cli/page_options.h"

#include <fmt/format.h>

#include <chrono>

#include "schema/columns.h"
#include "schema/version.h"

namespace sweep::cli {

PageStamp page_stamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {utc_time(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()).substr(0, 16),
          fmt::format("{} ({})", kVersion, kBuild)};
}

void add_heatmap_options(CLI::App& command, answers::HeatmapOptions& options) {
  command.add_option("--rows", options.rows,
                     "axis of the rows; absent: of the two axes that matter most the one with more values");
  command.add_option("--cols", options.cols, "axis of the columns; absent: the other one");
  command.add_option("--value", options.value = {}, kUsualMetric);
  command.add_option("--by", options.objective,
                     "metric that decides which configuration is best; absent: the value");
}

}  // namespace sweep::cli
