// Any bytes as a recipe of one's own, under a grid that gives most axes: an answer or an error, never a crash or unbounded memory;
// what is read can be expanded.
#include <cstdint>
#include <optional>
#include <string_view>

#include "orchestrator/grid/grid.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view recipe(reinterpret_cast<const char*>(data), size);
  sweep::grid::ReadOptions options{.max_points = 1'000'000};
  options.recipes.find = [&](std::string_view name) {
    return name == "own" ? std::optional<std::string_view>(recipe) : std::nullopt;
  };
  const auto grid = sweep::grid::read_text(
      "name: t\nworkload: own\nbase: {dp: 2, tp: 2, gpus_per_node: 4, seq_len: 128}\n"
      "grid: {zero: [0, 3], micro_batch_size: [1, 2], recompute: [none, full]}\n",
      "fuzz.yaml", options);
  if (!grid) return 0;
  int left = 20;  // trials built for one input
  (void)sweep::grid::expand(
      *grid, [&left](sweep::PlanEntry&&) { return --left > 0; }, 20);
  return 0;
}
