// A trainer's report, cut at a place that the first byte chooses: no crash, no memory without bound, and the
// same whether it comes in one piece or in two.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "worker/command/trainer_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  sweep::command::TrainerReport whole, cut;
  whole.feed(text);
  const std::size_t at = text.empty() ? 0 : data[0] % text.size();
  cut.feed(text.substr(0, at));
  cut.feed(text.substr(at));
  if (whole.lines() != cut.lines() || whole.damaged() != cut.damaged() ||
      whole.last_step() != cut.last_step())
    std::abort();
  return 0;
}
