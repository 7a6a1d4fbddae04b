// expand_bench: how many combinations of a grid with a `where` are expanded per second. Prints one JSON
// object.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "orchestrator/grid/grid.h"

namespace {

// 6,291,456 combinations. `where` keeps about one in a hundred, as a real search over layouts does; those
// that it keeps pay for their trial id too.
constexpr const char* kGrid = R"(
name: expansion
model: llama3-8b
base: {hardware: h100-sxm-80gb, precision: bf16, gpus_per_node: 8, global_batch_size: 1024}
grid:
  nodes: {pow2: [1, 128]}
  tp: {pow2: [1, 8]}
  pp: {pow2: [1, 8]}
  cp: {pow2: [1, 8]}
  zero: [0, 1, 2, 3]
  micro_batch_size: {pow2: [1, 128]}
  seq_len: {pow2: [1024, 131072]}
  recompute: [none, selective, full]
  grad_bucket_mb: [1, 5, 10, 25, 50, 100, 200, 400]
  attention: [math, flash]
where:
  - "tp * pp * cp == nodes * gpus_per_node"
  - "seq_len * micro_batch_size <= 32768 and zero > 0"
)";

}  // namespace

int main() {
  const auto grid = sweep::grid::read_text(kGrid, "expand_bench.yaml");
  if (!grid) {
    std::fprintf(stderr, "%s\n", grid.error().message.c_str());
    return 2;
  }
  std::uint64_t seen = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto counts = sweep::grid::expand(*grid, [&seen](sweep::PlanEntry&&) { return ++seen, true; });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!counts) {
    std::fprintf(stderr, "%s\n", counts.error().message.c_str());
    return 1;
  }
  const nlohmann::json figure = {
      {"points", counts->points}, {"admitted", counts->admitted},
      {"pruned", counts->pruned}, {"dropped_where", counts->dropped_where},
      {"seconds", took.count()},  {"points_per_s", static_cast<double>(counts->points) / took.count()}};
  std::printf("%s\n", figure.dump().c_str());
  return 0;
}
