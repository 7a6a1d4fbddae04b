// Data parallelism on 2 and 4 ranks against one rank on the concatenated batch: the same loss and the same
// gradients, with and without accumulation, with one bucket and with many, over both CPU backends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "bench_kernels/parallel/bucketed_sync.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/rank_driver.h"
#include "tests/unit/parallel/forked_ranks.h"

namespace sweep {
namespace {

using ::testing::Each;
using testing::require;

constexpr i64 kGlobalBatch = 8;
constexpr int kSteps = 3;

struct Layout {
  i64 dp, micro_steps, bucket_mb;
  const char* backend;
};

std::string name_of(const Layout& layout) {
  return std::string(layout.backend) + "_dp" + std::to_string(layout.dp) + "_accum" +
         std::to_string(layout.micro_steps) + (layout.bucket_mb == 0 ? "_bucket_each" : "");
}

Trial trial_of(const Layout& layout) {
  Trial trial = testing::small_attempt(layout.dp).trial;
  trial.grad_accum = layout.micro_steps;
  trial.micro_batch_size = kGlobalBatch / (layout.dp * layout.micro_steps);
  trial.global_batch_size = kGlobalBatch;
  trial.bucket_mb = layout.bucket_mb;
  trial.backend = layout.backend;
  return trial;
}

// Of one rank: the loss of each step, then every gradient of the first step.
std::vector<float> run_steps(const Trial& trial, int rank, parallel::GradientSync* sync) {
  step::TrainStep step(trial, c10::Device(c10::kCPU), rank, sync, nullptr);
  std::vector<float> gradients, losses;
  for (int i = 0; i < kSteps; ++i) {
    losses.push_back(static_cast<float>(step.run().loss));
    if (i > 0) continue;
    for (const auto& [name, tensor] : step.named_parameters()) {
      const at::Tensor flat = tensor.grad().contiguous();
      const float* values = flat.const_data_ptr<float>();
      gradients.insert(gradients.end(), values, values + flat.numel());
    }
  }
  losses.insert(losses.end(), gradients.begin(), gradients.end());
  return losses;
}

std::vector<std::vector<float>> run_layout(const Layout& layout) {
  const testing::ScratchFolder results;
  const auto file = [&](int rank) { return results.path() + "/" + std::to_string(rank); };
  const auto statuses =
      testing::run_ranks(static_cast<int>(layout.dp), [&](const parallel::GroupOptions& options) {
        parallel::BackendPtr group;
        std::unique_ptr<parallel::GradientSync> sync;
        if (layout.dp > 1) {
          group = parallel::make_backend(layout.backend, options);
          sync = parallel::make_bucketed_sync(group, layout.bucket_mb << 20);
        }
        const auto values = run_steps(trial_of(layout), options.rank, sync.get());
        std::ofstream(file(options.rank), std::ios::binary)
            .write(reinterpret_cast<const char*>(values.data()),
                   static_cast<std::streamsize>(values.size() * sizeof(float)));
        if (group) parallel::wait(*group->barrier());
      });
  EXPECT_THAT(statuses, Each(0));
  std::vector<std::vector<float>> all;
  for (int rank = 0; rank < layout.dp; ++rank) {
    std::ifstream in(file(rank), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    all.emplace_back(bytes.size() / sizeof(float));
    std::memcpy(all.back().data(), bytes.data(), bytes.size());
  }
  return all;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = kSteps; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

class DataParallel : public ::testing::TestWithParam<Layout> {};

TEST_P(DataParallel, GivesTheLossAndTheGradientsOfOneRank) {
  const auto one = run_layout({1, 1, 25, "shm"})[0];
  const auto ranks = run_layout(GetParam());
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(GetParam().dp));
  for (int step = 0; step < kSteps; ++step) {
    double mean = 0;
    for (const auto& rank : ranks) mean += rank[step] / static_cast<double>(ranks.size());
    EXPECT_NEAR(mean, one[step], 1e-5 * one[step]) << "loss of step " << step;
  }
  for (const auto& rank : ranks) {
    ASSERT_EQ(rank.size(), one.size());
    EXPECT_LT(relative_distance(rank, one), 1e-5);
    EXPECT_TRUE(std::equal(rank.begin() + kSteps, rank.end(), ranks[0].begin() + kSteps))
        << "ranks differ in some bit";
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, DataParallel,
                         ::testing::Values(Layout{1, 4, 25, "shm"}, Layout{2, 1, 25, "shm"},
                                           Layout{2, 2, 25, "shm"}, Layout{2, 1, 0, "shm"},
                                           Layout{2, 4, 0, "shm"}, Layout{4, 1, 25, "shm"},
                                           Layout{4, 2, 25, "shm"}, Layout{2, 2, 25, "gloo"},
                                           Layout{4, 2, 0, "gloo"}),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace sweep
