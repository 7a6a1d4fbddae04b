// Any bytes as a CSV of measurements: refused with a sentence that names the file, or rows that are whole
// trials.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "orchestrator/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sweep;
  imports::Options options;
  options.shown_as = "f.csv";
  options.leave_rest = size % 2 == 0;
  const auto read = imports::read({reinterpret_cast<const char*>(data), size}, options);
  if (!read) {
    if (!read.error().message.starts_with("f.csv")) std::abort();
    return 0;
  }
  for (const auto& [entry, result] : read->rows) {
    if (entry.id.size() != 16 || entry.trial.model.empty() || entry.source.empty()) std::abort();
    if (entry.trial.world() < 1 || entry.trial.nodes < 1 || entry.trial.global_batch_size < 1) std::abort();
    if (entry.admitted != result.has_value()) std::abort();
    if (!result) continue;
    const auto& rate = result->metrics.tokens_per_s_gpu;
    if (rate && (!std::isfinite(*rate) || *rate < 0)) std::abort();
  }
  return 0;
}
