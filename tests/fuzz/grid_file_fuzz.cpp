// Any bytes as a grid file: an answer or an error, never a crash or unbounded memory; what is read can be expanded.
#include <cstdint>
#include <string_view>

#include "orchestrator/grid/grid.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto grid = sweep::grid::read_text(text, "fuzz.yaml", {.max_points = 1'000'000});
  if (!grid) return 0;
  int left = 200;  // trials built for one input
  (void)sweep::grid::expand(*grid, [&left](sweep::PlanEntry&&) { return --left > 0; }, 20);
  return 0;
}
