// The cost of tensor and context parallelism: the bytes each rank sends equal the closed forms, and the peak
// of each rank's memory equals the dry run's to the byte.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/step/dry_run.h"
#include "bench_kernels/step/traffic_check.h"
#include "tests/parity/layouts.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

using shape::Dimension;

struct Case {
  const char* name;
  i64 dp, tp, cp;
  bool sp = false, overlap = false;
  CpCommType comm_type = CpCommType::kRing;
  Precision precision = Precision::kFp32;
  bool gpt2 = false;
};

Trial trial_of(const Case& c) {
  Trial t = tiny_trial();
  t.spec.kv_heads = c.gpt2 ? 4 : 2;
  t.micro_batch_size = 2, t.precision = c.precision, t.sp = c.sp, t.tp_overlap = c.overlap,
  t.cp_comm_type = c.comm_type;
  if (c.gpt2) {
    t.spec.family = "gpt2", t.spec.max_positions = 24, t.spec.tie_embeddings = true;
    t.spec.attention_bias = t.spec.linear_bias = true;
    t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  }
  return with_degrees(t, c.dp, c.tp, 1, c.cp);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"tp2", 1, 2, 1},
      {"tp4_gpt2", 1, 4, 1, false, false, CpCommType::kRing, Precision::kFp32, true},
      {"tp2_overlap", 1, 2, 1, false, true},
      {"tp2_sp", 1, 2, 1, true},
      {"tp2_sp_overlap", 1, 2, 1, true, true},
      {"tp4_sp_gpt2", 1, 4, 1, true, false, CpCommType::kRing, Precision::kFp32, true},
      {"tp2_sp_bf16", 1, 2, 1, true, false, CpCommType::kRing, Precision::kBf16},
      {"tp4_kv2_overlap", 1, 4, 1, false, true},
      {"tp4_kv2_sp_overlap", 1, 4, 1, true, true},
      {"cp2", 1, 1, 2},
      {"cp4_gpt2", 1, 1, 4, false, false, CpCommType::kRing, Precision::kFp32, true},
      {"cp2_bf16", 1, 1, 2, false, false, CpCommType::kRing, Precision::kBf16},
      {"cp2_all_to_all", 1, 1, 2, false, false, CpCommType::kAllToAll},
      {"cp2_all_to_all_bf16", 1, 1, 2, false, false, CpCommType::kAllToAll, Precision::kBf16},
      {"dp2_tp2_cp2_sp", 2, 2, 2, true},
      {"dp2_tp2_cp2_sp_overlap", 2, 2, 2, true, true},
  };
  return all;
}

class SplitVolume : public ::testing::TestWithParam<Case> {};

TEST_P(SplitVolume, TrafficIsTheClosedForm) {
  const Trial t = trial_of(GetParam());
  const auto statuses = run_ranks(static_cast<int>(t.world()), [&](const comm::GroupOptions& options) {
    parallel::Mesh mesh = mesh_of(t, options);
    step::TrainStep step(t, at::kCPU, mesh, nullptr);
    step.run();
    mesh.reset_traffic();
    step.run();
    for (const std::string& fault : step::traffic_faults(t, mesh, step)) require(false, fault);
    mesh[Dimension::kWorld].barrier();
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

// Two steps' peak over what was there before the step was built.
i64 peak_of(const Trial& t, at::Device device, const parallel::Mesh& mesh) {
  memory::install(device.type());
  const i64 before = memory::stats(device.type()).current;
  memory::reset_peak(device.type());
  step::TrainStep step(t, device, mesh, nullptr);
  for (int i = 0; i < 2; ++i) step.run();
  return memory::stats(device.type()).peak - before;
}

TEST_P(SplitVolume, PeakIsTheDryRunsOnEveryRank) {
  const Trial t = trial_of(GetParam());
  const auto statuses = run_ranks(static_cast<int>(t.world()), [&](const comm::GroupOptions& options) {
    const i64 dry = peak_of(t, at::kMeta, parallel::pretend(*shape::ParallelDims::make(t), options.rank));
    const parallel::Mesh mesh = mesh_of(t, options);
    const i64 real = peak_of(t, at::kCPU, mesh);
    require(dry == real, "rank " + std::to_string(options.rank) + ": the dry run says " +
                             std::to_string(dry) + " bytes, the run took " + std::to_string(real));
    mesh[Dimension::kWorld].barrier();
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

TEST_P(SplitVolume, ADryRunOnBehalfOfCudaRunsThePlainCompositions) {
  Trial t = trial_of(GetParam());
  t.precision = Precision::kBf16;
  const auto cuda = step::dry_run_line(t, step::Backend::kCuda),
             cpu = step::dry_run_line(t, step::Backend::kCpu);
  ASSERT_TRUE(cuda) << cuda.error().message;
  ASSERT_TRUE(cpu) << cpu.error().message;
  const auto peak = [](const std::string& line) {
    return nlohmann::json::parse(line)["peak_rank_bytes"].get<i64>();
  };
  EXPECT_GE(peak(*cuda), peak(*cpu)) << "compositions hold temporaries that fused loops do not";
}

INSTANTIATE_TEST_SUITE_P(Layouts, SplitVolume, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sweep::testing
