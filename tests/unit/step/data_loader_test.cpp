// Tokens that a rank writes to a file and reads back for each step: the same batches, losses and device memory.
#include "bench_kernels/step/data_loader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/step/train_step.h"
#include "tests/unit/step/small_trial.h"

namespace sweep::step {
namespace {

// The file holds what is made in memory otherwise, and nothing of it is in the device's memory.
TEST(DataLoader, DataFromAFileChangesNeitherLossesNorMemory) {
  memory::install(c10::kCPU);
  const parallel::Mesh mesh = parallel::alone();
  Trial t = small_trial();
  t.micro_batch_size = 2, t.grad_accum = 2;
  const auto run = [&] {
    memory::reset_peak(c10::kCPU);
    const i64 before = memory::stats(c10::kCPU).current;
    TrainStep step(t, at::kCPU, mesh, nullptr);
    std::vector<double> seen;
    for (int i = 0; i < 4; ++i) {
      const StepTimes times = step.run();
      EXPECT_EQ(times.data_ns.has_value(), t.data != DataSource::kNone);
      EXPECT_LE(times.forward_ns + times.backward_ns + times.optimizer_ns + times.data_ns.value_or(0),
                times.step_ns);
      seen.push_back(times.loss);
    }
    seen.push_back(static_cast<double>(memory::stats(c10::kCPU).peak - before));
    return seen;
  };
  const std::vector<double> in_memory = run();
  for (const DataSource data : {DataSource::kTokens, DataSource::kText})
    for (const i64 ahead : {0, 1, 3}) {
      t.data = data, t.data_ahead = ahead;
      EXPECT_EQ(run(), in_memory) << to_string(data) << ' ' << ahead;
    }
}

// Each next() is the step's batch again, drawn from the file alone.
TEST(DataLoader, EveryRankReadsItsRowsAndPositions) {
  Trial t = small_trial();
  t.micro_batch_size = 1, t.grad_accum = 2, t.dp = 2, t.cp = 2, t.data = DataSource::kText;
  for (const i64 rank : {0, 1}) {
    const shape::Place place{0, rank, 1 - rank, 0};
    const Batch made = make_batch(t, at::kCPU, place, synthetic_tokens(1, 97));
    DataLoader loader(t, place, synthetic_tokens(1, 97), "/dev/shm");
    for (int step = 0; step < 3; ++step) {
      const Batch read = loader.next();
      for (std::size_t micro = 0; micro < 2; ++micro) {
        EXPECT_TRUE(read.tokens[micro].equal(made.tokens[micro]));
        EXPECT_TRUE(read.labels[micro].equal(made.labels[micro]));
      }
    }
  }
}

TEST(DataLoader, AFolderThatIsNotThereIsAnErrorWithTheWayOut) {
  Trial t = small_trial();
  t.data = DataSource::kTokens;
  try {
    DataLoader(t, {}, synthetic_tokens(1, 97), "/no/such/folder");
    FAIL() << "there is no such folder";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("checkpoint_folder"));
  }
}

}  // namespace
}  // namespace sweep::step
