#include "orchestrator/cli/page_stamp.h"

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

}  // namespace sweep::cli
