#include "tests/parity/rank_costs.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/step/dry_run.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/one_core.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

RankCost cost_of(const Trial& trial, const comm::GroupOptions& options, int steps) {
  const auto dims = shape::ParallelDims::make(trial);
  require(dims.has_value(), dims ? "" : dims.error().message);
  const parallel::Mesh mesh(*dims, options.rank, [&](const parallel::Mesh::Meeting& met) {
    comm::GroupOptions of_group = options;
    of_group.name = met.name, of_group.rank = met.rank, of_group.world = met.size();
    return comm::make_backend(trial.backend, of_group);
  });
  memory::install(c10::DeviceType::CPU);
  const i64 before = memory::stats(c10::DeviceType::CPU).current;
  memory::reset_peak(c10::DeviceType::CPU);
  step::TrainStep step(trial, at::kCPU, mesh, nullptr);
  for (int i = 0; i < steps; ++i) {
    mesh[shape::Dimension::kPipeline].reset_traffic();
    step.run();
  }
  RankCost cost;
  cost.peak_bytes = memory::stats(c10::DeviceType::CPU).peak - before;
  const comm::Traffic& traffic = mesh[shape::Dimension::kPipeline].traffic();
  cost.sends = traffic.calls_of(comm::Kind::kSend);
  cost.receives = traffic.calls_of(comm::Kind::kRecv);
  cost.pipeline_bytes = traffic.bytes_of(comm::Kind::kSend);
  mesh[shape::Dimension::kWorld].barrier();
  return cost;
}

}  // namespace

std::vector<RankCost> costs_of_ranks(const Trial& trial, int steps) {
  const ScratchFolder results;
  const auto file = [&](int rank) { return results.path() + "/" + std::to_string(rank); };
  const int world = static_cast<int>(trial.world());
  const OneCore core;
  const auto statuses = run_ranks(world, [&](const comm::GroupOptions& options) {
    const RankCost cost = cost_of(trial, options, steps);
    std::ofstream(file(options.rank), std::ios::binary)
        .write(reinterpret_cast<const char*>(&cost), sizeof(cost));
  });
  std::vector<RankCost> costs(static_cast<std::size_t>(world));
  for (int rank = 0; rank < world; ++rank) {
    if (statuses[static_cast<std::size_t>(rank)] != 0)
      throw std::runtime_error("rank " + std::to_string(rank) + " failed");
    std::ifstream in(file(rank), std::ios::binary);
    in.read(reinterpret_cast<char*>(&costs[static_cast<std::size_t>(rank)]), sizeof(RankCost));
  }
  return costs;
}

std::vector<i64> dry_peaks(const Trial& trial) {
  const auto line = step::dry_run_line(trial, step::Backend::kCpu);
  if (!line) throw std::runtime_error(line.error().message);
  return nlohmann::json::parse(*line)["peak_bytes"].get<std::vector<i64>>();
}

}  // namespace sweep::testing
