// Data parallelism on 2 and 4 ranks against one rank on the concatenated batch: the same loss, gradients and
// parameters, with and without accumulation, with one bucket and with many, over both CPU backends.
#include <gtest/gtest.h>

#include "tests/parity/layouts.h"

namespace sweep::testing {
namespace {

constexpr int kSteps = 3;

struct Layout {
  i64 dp, micro_batch, grad_bucket_mb;
  CommBackend backend;
};

class DataParallel : public ::testing::TestWithParam<Layout> {};

TEST_P(DataParallel, GivesTheLossAndTheGradientsOfOneRank) {
  const Layout& layout = GetParam();
  Trial one = tiny_trial();
  one.micro_batch_size = 8, one.grad_accum = 1;
  Trial trial = tiny_trial();
  trial.micro_batch_size = layout.micro_batch, trial.grad_bucket_mb = layout.grad_bucket_mb,
  trial.backend = layout.backend;
  trial = with_degrees(trial, layout.dp, 1, 1, 1);
  const WholeRun ranks = run_layout(trial, kSteps);
  EXPECT_EQ(ranks.faults, std::vector<std::string>{});
  const Distance d = distance(ranks, run_layout(one, kSteps));
  EXPECT_LT(d.loss, 1e-5);
  EXPECT_LT(d.gradient, 1e-5) << d.worst;
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DataParallel,
    ::testing::Values(Layout{1, 2, 25, CommBackend::kShm}, Layout{2, 4, 25, CommBackend::kShm},
                      Layout{2, 2, 25, CommBackend::kShm}, Layout{2, 4, 0, CommBackend::kShm},
                      Layout{2, 1, 0, CommBackend::kShm}, Layout{4, 2, 25, CommBackend::kShm},
                      Layout{4, 1, 25, CommBackend::kShm}, Layout{2, 2, 25, CommBackend::kGloo},
                      Layout{4, 1, 0, CommBackend::kGloo}),
    [](const auto& info) {
      const Layout& l = info.param;
      return std::string(to_string(l.backend)) + "_dp" + std::to_string(l.dp) + "_mbs" +
             std::to_string(l.micro_batch) + (l.grad_bucket_mb == 0 ? "_bucket_each" : "");
    });

}  // namespace
}  // namespace sweep::testing
