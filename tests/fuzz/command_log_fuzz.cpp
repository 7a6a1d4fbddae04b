// Any bytes as a trainer's log, read by the patterns of the recipes: steps go upwards, every number is finite, and no line takes
// forever.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "worker/command/log_patterns.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto patterns =
      sweep::command::LogPatterns::compile({{"step", "(?:iteration|step:?) +([0-9]+)"},
                                            {"step_ms", "elapsed time per iteration \\(ms\\): ([0-9.,]+)"},
                                            {"step_s", "took ([0-9.eE+-]+)"},
                                            {"loss", "loss: +([0-9.eE+-]+)"},
                                            {"steps_per_s", "([0-9.]+)it/s"},
                                            {"mean_step_s", "mean ([0-9.]+)"},
                                            {"tokens", "tokens: +([0-9,]+)"},
                                            {"reserved_gib", "reserved: +([0-9.eE+-]+)"}});
  const std::string_view log{reinterpret_cast<const char*>(data), size};
  patterns->feed(log.substr(0, size / 2));
  if (size % 2 == 1) patterns->gap();
  patterns->feed(log.substr(size / 2));
  patterns->finish();
  if (const auto& mean = patterns->summary(); mean && (!std::isfinite(*mean->ms) || *mean->ms < 0))
    std::abort();
  sweep::i64 last = 0;
  for (const auto& step : patterns->take_steps()) {
    if (step.number <= last || !std::isfinite(*step.ms) || *step.ms < 0) std::abort();
    if (step.loss && !std::isfinite(*step.loss)) std::abort();
    last = step.number;
  }
  return 0;
}
