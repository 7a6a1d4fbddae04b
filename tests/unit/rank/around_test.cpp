#include "worker/rank/around.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bench_kernels/kernels/counting_allocator.h"
#include "tests/unit/step/small_trial.h"

namespace sweep::rank {
namespace {

// An evaluation's time does not hold what another stage of the pipeline still computes.
TEST(Evaluate, AllRanksMeetBeforeItIsTimed) {
  memory::install(c10::kCPU);
  Attempt attempt;
  attempt.trial = step::small_trial();
  attempt.trial.eval_batch_size = 2, attempt.trial.eval_batches = 1;
  const parallel::Mesh mesh = parallel::alone();
  std::string order;
  step::TrainStep step(attempt.trial, at::kCPU, mesh, [&](Part) { order += 'p'; });
  step.run();
  order.clear();
  Device device(attempt.trial, 0);
  ProgressWriter progress("");
  AroundStep around;
  evaluate(
      attempt, step, device, [&] { order += 'm'; }, progress, around);
  EXPECT_EQ(order.substr(0, 2), "mp");
  EXPECT_EQ(std::ranges::count(order, 'm'), 1);
  EXPECT_GT(around.eval_ns, 0);
}

}  // namespace
}  // namespace sweep::rank
