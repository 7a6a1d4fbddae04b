// The thread that reads and writes a scratch file: order, waiting, and errors of jobs.
#include "bench_kernels/parallel/disk_queue.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench_kernels/parallel/file_values.h"

namespace sweep::parallel {
namespace {

TEST(DiskQueue, AReadFindsWhatAWriteBeforeItLeft) {
  ScratchFile file(1 << 20);
  DiskQueue queue(file);
  std::vector<int> numbers(1 << 16), found(1 << 16), second(1 << 16);
  std::iota(numbers.begin(), numbers.end(), 1);
  const auto bytes = static_cast<std::int64_t>(numbers.size() * sizeof(int));
  queue.write(numbers.data(), bytes, 4096);
  const DiskQueue::Job first = queue.read(found.data(), bytes, 4096);
  queue.wait(first);
  EXPECT_EQ(found, numbers);
  queue.wait(0);  // none
  queue.wait(queue.read(second.data(), 8, 4096));
  EXPECT_EQ(second[1], 2);
  EXPECT_EQ(second[2], 0) << "no more than what was asked for";
}

TEST(DiskQueue, WaitsForWhatWasAskedBeforeItEnds) {
  ScratchFile file(1 << 20);
  std::array<char, 4> word{'d', 'i', 's', 'k'}, found{};
  {
    DiskQueue queue(file);
    for (std::int64_t i = 0; i < 64; ++i) queue.write(word.data(), 4, 4 * i);
  }
  file.read(found.data(), 4, 4 * 63);
  EXPECT_EQ(found, word);
}

TEST(DiskQueue, AJobThatFailsIsSaidToWhoeverWaits) {
  ScratchFile file(64);
  DiskQueue queue(file);
  std::array<char, 64> room{};
  const DiskQueue::Job bad = queue.read(room.data(), 64, 32);  // behind the end
  const DiskQueue::Job good = queue.read(room.data(), 8, 0);
  EXPECT_THROW(queue.wait(bad), std::runtime_error);
  EXPECT_THROW(queue.wait(good), std::runtime_error) << "what comes after may have read what was not written";
}

TEST(FileValues, MemoryIsThereOnlyWhileNumbersAreUsed) {
  FileValues values(at::kCPU);
  const at::Tensor a = at::arange(1000, at::kFloat), b = at::arange(500, at::kFloat).add_(7);
  const at::Tensor expected = a.clone(), part = a.narrow(0, 100, 10);
  values.keep(a), values.keep(b);
  EXPECT_EQ(a.storage().nbytes(), 0U);
  values.expect(0), values.expect(1), values.expect(0);
  values.arrive(0);
  EXPECT_TRUE(at::equal(a, expected));
  EXPECT_EQ(part[0].item<float>(), 100) << "views see it";
  values.leave(0), values.leave(0);
  EXPECT_EQ(a.storage().nbytes(), 0U);
  values.arrive(1);
  EXPECT_EQ(b[0].item<float>(), 7);
  values.leave(1);
}

TEST(FileValues, WhatIsSavedIsWhatComesBack) {
  FileValues values(at::kCPU);
  at::Tensor a = at::zeros({1000}), b = at::zeros({1000});
  values.keep(a), values.keep(b);
  for (const std::size_t bucket : {0U, 1U}) values.expect(bucket, false), values.arrive(bucket);
  a.fill_(3), values.save(0);
  b.fill_(4), values.save(1);
  EXPECT_EQ(a.storage().nbytes(), 0U) << "the next one is on its way to the file";
  values.expect(1);  // while it is still on its way
  values.settle();
  values.arrive(1);
  EXPECT_EQ(b.sum().item<float>(), 4000);
  values.leave(1);
  values.expect(0), values.arrive(0);
  EXPECT_EQ(a.sum().item<float>(), 3000);
}

}  // namespace
}  // namespace sweep::parallel
