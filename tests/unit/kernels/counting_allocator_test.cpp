#include "bench_kernels/kernels/counting_allocator.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace sweep::memory {
namespace {

class CountingAllocator : public ::testing::TestWithParam<c10::DeviceType> {
 protected:
  void SetUp() override {
    install(type());
    start_clean(type());
  }
  void TearDown() override { set_cap(type(), std::nullopt); }
  c10::DeviceType type() const { return GetParam(); }
  at::Tensor bytes(std::int64_t n) const {
    return at::empty({n}, at::TensorOptions(type()).dtype(at::kByte));
  }
};

TEST_P(CountingAllocator, RoundsEveryBlockUpTo512Bytes) {
  const at::Tensor one = bytes(17), full = bytes(512), more = bytes(513);
  EXPECT_EQ(stats(type()).current, 512 + 512 + 1024);
}

TEST_P(CountingAllocator, AnEmptyTensorTakesNothing) {
  const at::Tensor empty = bytes(0);
  EXPECT_EQ(stats(type()).current, 0);
}

TEST_P(CountingAllocator, PeakIsTheHighWaterMarkSinceItsReset) {
  { const at::Tensor large = bytes(10'240); }
  EXPECT_EQ(stats(type()).current, 0);
  EXPECT_EQ(stats(type()).peak, 10'240);
  const at::Tensor small = bytes(1024);
  reset_peak(type());
  EXPECT_EQ(stats(type()).peak, 1024);
}

TEST_P(CountingAllocator, ATraceSaysWhatLivesAtThePeak) {
  BlockTrace trace(type());
  const at::Tensor weights = bytes(4096);
  { const at::Tensor lower = bytes(1024); }
  trace.mark();
  { const at::Tensor one = bytes(1024), two = bytes(1024); }
  const at::Tensor after = bytes(1024);
  const auto blocks = trace.at_peak();
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].bytes, 4096);
  EXPECT_TRUE(blocks[0].lasting);
  EXPECT_EQ(blocks[1].bytes, 1024);
  EXPECT_EQ(blocks[1].count, 2);
  EXPECT_FALSE(blocks[1].lasting);
}

TEST_P(CountingAllocator, ATraceSaysWhichTensorsWereThereAtThePeak) {
  BlockTrace trace(type());
  const at::Tensor before = bytes(4096);
  { const at::Tensor high = bytes(2048); }
  const at::Tensor after = bytes(1024);
  EXPECT_EQ(trace.bytes_at_peak({before, after}), 4096);
  EXPECT_EQ(trace.bytes_at_peak({after}), 0) << "it may lie where another block was at the peak";
}

TEST_P(CountingAllocator, AtTheCapFitsAndAboveItIsOutOfMemory) {
  const at::Tensor held = bytes(1024);
  set_cap(type(), 2048);
  { const at::Tensor fits = bytes(1024); }
  EXPECT_THROW(bytes(1025), c10::OutOfMemoryError);
  EXPECT_EQ(stats(type()).ooms, 1);
  EXPECT_EQ(stats(type()).asked, 1025);
  EXPECT_EQ(stats(type()).current, 1024) << "a refused block is not counted";
  EXPECT_EQ(stats(type()).peak, 2048);
}

TEST_P(CountingAllocator, HostBlocksAreCountedApartAndNeverCapped) {
  set_cap(type(), 512);
  std::optional<at::Tensor> host = empty_on_host({2000}, bytes(1).options());
  EXPECT_EQ(stats(type()).current, 0);
  EXPECT_EQ(stats(type()).host_current, 2048);
  EXPECT_NO_THROW(bytes(512)) << "a host block takes no room on the device";
  host.reset();
  EXPECT_EQ(stats(type()).host_current, 0);
  EXPECT_EQ(stats(type()).host_peak, 2048);
  reset_peak(type());
  EXPECT_EQ(stats(type()).host_peak, 0);
}

TEST_P(CountingAllocator, ScratchIsNeitherCountedNorCappedAlsoWhenFreedOutsideItsScope) {
  set_cap(type(), 512);
  std::optional<at::Tensor> scratch;
  {
    const ScratchScope outer;
    { const ScratchScope inner; }
    scratch = bytes(1 << 20);
  }
  EXPECT_EQ(stats(type()).current, 0);
  scratch.reset();
  EXPECT_EQ(stats(type()).current, 0);
  const at::Tensor counted = bytes(512);
  EXPECT_EQ(stats(type()).current, 512);
}

TEST_P(CountingAllocator, SingleNumbersAreNotCounted) {
  const at::Tensor number = bytes(16);
  EXPECT_EQ(stats(type()).current, 0);
}

TEST_P(CountingAllocator, ScratchInsideAHostScopeStaysScratch) {
  set_cap(type(), 512);
  {
    const HostScope host;
    const at::Tensor block = bytes(4096);
    const ScratchScope scratch;
    const at::Tensor uncounted = bytes(4096);
    EXPECT_EQ(stats(type()).current, 0);
    EXPECT_EQ(stats(type()).host_current, 4096);
  }
  EXPECT_EQ(stats(type()).host_current, 0);
  EXPECT_EQ(stats(type()).host_peak, 4096);
  reset_peak(type());
  EXPECT_EQ(stats(type()).host_peak, 0);
}

TEST_P(CountingAllocator, BlocksFromBeforeACleanStartAreNotSubtracted) {
  std::optional<at::Tensor> before = bytes(4096);
  start_clean(type());
  const at::Tensor after = bytes(512);
  before.reset();
  EXPECT_EQ(stats(type()).current, 512);
}

TEST(CountingAllocatorOnMeta, HasNoData) {
  install(c10::DeviceType::Meta);
  const at::Tensor huge = at::empty({std::int64_t{1} << 40}, at::TensorOptions(at::kMeta).dtype(at::kByte));
  EXPECT_EQ(huge.storage().data_ptr().get(), nullptr);
  EXPECT_GE(stats(c10::DeviceType::Meta).current, std::int64_t{1} << 40);
}

TEST(CountingAllocatorOnCpu, GivesAlignedMemoryAndCopies) {
  install(c10::DeviceType::CPU);
  const at::Tensor tensor = at::empty({3}, at::kFloat).fill_(2.5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0u);
  EXPECT_EQ(tensor.clone().sum().item<float>(), 7.5f);
}

TEST(CountingAllocatorOnCpu, RawMemoryIsCountedToo) {
  install(c10::DeviceType::CPU);
  start_clean(c10::DeviceType::CPU);
  void* raw = c10::GetAllocator(c10::kCPU)->raw_allocate(100);
  EXPECT_EQ(stats(c10::DeviceType::CPU).current, 512);
  c10::GetAllocator(c10::kCPU)->raw_deallocate(raw);
  EXPECT_EQ(stats(c10::DeviceType::CPU).current, 0);
}

TEST(CountingAllocatorOnCpu, RawMemoryOfNoBytesIsFreedLikeAnyOther) {
  install(c10::DeviceType::CPU);
  c10::Allocator* cpu = c10::GetAllocator(c10::DeviceType::CPU);
  cpu->raw_deallocate(cpu->raw_allocate(0));
}

TEST(CountingAllocatorOnCpu, OtherThreadsAreNotCountedOnceAsked) {
  install(c10::DeviceType::CPU);
  start_clean(c10::DeviceType::CPU);
  const auto block = [] { return at::empty({4096}, at::kByte); };
  at::Tensor theirs;
  std::thread([&] { theirs = block(); }).join();
  EXPECT_EQ(stats(c10::DeviceType::CPU).current, 4096);
  count_this_thread_only();
  std::thread([&] { theirs = block(); }).join();
  EXPECT_EQ(stats(c10::DeviceType::CPU).current, 0);
  const at::Tensor ours = block();
  EXPECT_EQ(stats(c10::DeviceType::CPU).current, 4096);
}

INSTANTIATE_TEST_SUITE_P(Devices, CountingAllocator,
                         ::testing::Values(c10::DeviceType::CPU, c10::DeviceType::Meta),
                         [](const auto& info) { return c10::DeviceTypeName(info.param); });

}  // namespace
}  // namespace sweep::memory
