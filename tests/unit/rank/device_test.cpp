// Tests of the numbers that timed products use.
#include "worker/rank/device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sweep::rank {
namespace {

TEST(Device, MatricesToTimeAreRandomAndAlwaysTheSame) {
  Trial trial;
  trial.hardware = "cpu";
  const Device device(trial, 0);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor values = device.random_matrix(64, 48, type).to(at::kDouble);
    EXPECT_TRUE(values.equal(device.random_matrix(64, 48, type).to(at::kDouble)));
    EXPECT_LE(values.abs().max().item<double>(), 1);
    EXPECT_NEAR(values.std().item<double>(), std::sqrt(1.0 / 3), 0.05);  // uniform in [-1, 1]
  }
}

}  // namespace
}  // namespace sweep::rank
