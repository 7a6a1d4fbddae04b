#include "bench_kernels/model/host_store.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::model {
namespace {

struct Bytes {
  std::int64_t device, host;
  bool operator==(const Bytes&) const = default;
};

TEST(HostStore, TakesTensorsAwayAtTheNextSendAndBringsTheirValuesBack) {
  memory::install(c10::DeviceType::CPU);
  const auto now = [] {
    const auto s = memory::stats(c10::DeviceType::CPU);
    return Bytes{s.current, s.host_current};
  };
  const Bytes before = now();
  const auto grown = [&] { return Bytes{now().device - before.device, now().host - before.host}; };
  HostStore store(at::kCPU);
  at::Tensor a = at::full({256}, 3.0f), same = a, nothing, b = at::full({128}, 5.0f);
  ASSERT_EQ(grown(), (Bytes{1024 + 512, 0}));

  auto first = store.send({&a, &same, &nothing});
  EXPECT_FALSE(a.defined() || same.defined());
  EXPECT_EQ(grown(), (Bytes{1024 + 512, 1024})) << "one copy; the device's stays until it must have left";
  auto second = store.send({&b});
  EXPECT_EQ(grown(), (Bytes{512, 1024 + 512}));
  store.settle();
  EXPECT_EQ(grown(), (Bytes{0, 1024 + 512}));

  store.fetch(first);
  store.fetch(first);
  EXPECT_EQ(grown(), (Bytes{1024, 1024 + 512}));
  store.arrive(first);
  EXPECT_EQ(grown(), (Bytes{1024, 512}));
  EXPECT_TRUE(a.is_same(same)) << "what was one tensor is one again";
  EXPECT_FALSE(nothing.defined());
  EXPECT_EQ(a.sum().item<float>(), 3.0f * 256);
  store.fetch(second);
  store.arrive(second);
  EXPECT_EQ(b.sum().item<float>(), 5.0f * 128);
}

}  // namespace
}  // namespace sweep::model
