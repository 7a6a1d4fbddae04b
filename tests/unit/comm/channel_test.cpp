#include "bench_kernels/comm/channel.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace sweep::comm {
namespace {

TEST(Channel, SaysWhenAWaitBeginsAndEnds) {
  Channel channel("tp", make_fake(0, 2), nullptr);
  std::vector<bool> told;
  channel.watch_waits([&](bool begins) { told.push_back(begins); });
  const at::Tensor tensor = at::zeros({4});
  Pending pending = channel.all_reduce(tensor);
  EXPECT_TRUE(told.empty()) << "it has begun, and nobody waits";
  pending.wait();
  EXPECT_EQ(told, (std::vector<bool>{true, false}));
  pending.wait();  // nothing is under way
  EXPECT_EQ(told.size(), 2u);
  channel.watch_waits({});
  channel.all_reduce(tensor).wait();
  EXPECT_EQ(told.size(), 2u);
}

}  // namespace
}  // namespace sweep::comm
