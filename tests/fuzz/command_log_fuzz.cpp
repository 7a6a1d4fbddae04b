// Any bytes as a trainer's log, read by the patterns of the recipes: steps go upwards, every number is finite, and no line takes
// forever.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "worker/command/log_patterns.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto patterns =
      sweep::command::LogPatterns::compile({{"step", "(?:iteration|step:?) +([0-9]+)"},
                                            {"step_ms", "elapsed time per iteration \\(ms\\): ([0-9.,]+)"},
                                            {"step_s", "took ([0-9.eE+-]+)"},
                                            {"loss", "loss: +([0-9.eE+-]+)"},
                                            {"tokens", "tokens: +([0-9,]+)"},
                                            {"reserved_gib", "reserved: +([0-9.eE+-]+)"}});
  const auto found = patterns->read({reinterpret_cast<const char*>(data), size});
  sweep::i64 last = 0;
  for (const auto& step : found.steps) {
    if (step.number <= last || !std::isfinite(*step.ms) || *step.ms < 0) std::abort();
    if (step.loss && !std::isfinite(*step.loss)) std::abort();
    last = step.number;
  }
  return 0;
}
