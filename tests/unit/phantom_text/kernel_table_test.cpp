// KernelTable: exact entry, nearest shape, model; bounds.
#include "worker/phantom/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep::phantom {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

const char* const kHeader = "operator,shape,type,gpu,us\n";

KernelTable table(const std::string& rows) {
  return KernelTable::read(kHeader + rows, "h100-sxm-80gb");
}

// The model takes a nanosecond for each element of the shape; the peaks allow half of it.
KernelTable::Cost by_volume(const std::vector<double>& sizes) {
  double volume = 1;
  for (const double size : sizes) volume *= size;
  return {static_cast<Ns>(volume), static_cast<Ns>(volume / 2)};
}

KernelTime time_of(const KernelTable& t, const KernelWork& work) {
  return t.time(work, by_volume);
}

TEST(KernelTable, WithoutARowTheModelCounts) {
  const auto time = time_of(KernelTable(), {"mm", "bf16", {100, 100, 100}});
  EXPECT_EQ(time.lasts, 1'000'000);
  EXPECT_EQ(time.source, Source::kModel);
}

TEST(KernelTable, TheMeasuredShapeHasItsMeasuredTime) {
  const auto t = table("mm,100x200x300,bf16,h100-sxm-80gb,7000\nmm,100x200x300,fp32,h100-sxm-80gb,9000\n");
  for (const auto& sizes : {std::vector<double>{100, 200, 300}, {200, 100, 300}}) {
    const auto time = time_of(t, {"mm", "bf16", sizes});
    EXPECT_EQ(time.lasts, 7'000'000);
    EXPECT_EQ(time.source, Source::kTable);
  }
  EXPECT_EQ(time_of(t, {"mm", "fp16", {100, 200, 300}}).source, Source::kModel);
  EXPECT_EQ(time_of(t, {"bmm", "bf16", {100, 200, 300}}).source, Source::kModel);
}

// Twice the work of the nearest shape takes twice its time; the one further off does not count.
TEST(KernelTable, AnotherShapeIsScaledFromTheNearest) {
  const auto t = table("mm,100x100x100,bf16,h100-sxm-80gb,1500\nmm,800x100x100,bf16,h100-sxm-80gb,6000\n");
  const auto time = time_of(t, {"mm", "bf16", {100, 100, 200}});
  EXPECT_EQ(time.lasts, 3'000'000);
  EXPECT_EQ(time.source, Source::kScaled);
  EXPECT_EQ(time_of(t, {"mm", "bf16", {6400, 6400, 100}}).source, Source::kModel);
}

TEST(KernelTable, NoKernelIsFasterThanThePeaksAllow) {
  const auto t = table("attention,10x100x100,bf16,,1\n");
  CaptureStderr();
  const auto time = time_of(t, {"attention", "bf16", {10, 100, 100}});
  EXPECT_EQ(time.lasts, 50'000);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("peaks"));
}

TEST(KernelTable, AKernelTenTimesSlowerThanThePeaksAllowIsWarnedOf) {
  const auto t = table("slow,10x100x100,bf16,,600\nfine,10x100x100,bf16,,400\n");
  CaptureStderr();
  EXPECT_EQ(time_of(t, {"fine", "bf16", {10, 100, 100}}).lasts, 400'000);
  EXPECT_EQ(GetCapturedStderr(), "");
  CaptureStderr();
  EXPECT_EQ(time_of(t, {"slow", "bf16", {10, 100, 100}}).lasts, 600'000);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("slow bf16 10x100x100"));
}

TEST(KernelTable, RowsOfOtherGpusDoNotCountAndTheLastOfEqualRowsDoes) {
  const auto t = table("mm,8x8x8,bf16,a100-80gb,1\nmm,8x8x8,bf16,,2\nmm,8x8x8,bf16,h100-sxm-80gb,3\n");
  EXPECT_EQ(t.size(), 2u);
  EXPECT_EQ(time_of(t, {"mm", "bf16", {8, 8, 8}}).lasts, 3000);
}

TEST(KernelTable, ColumnsStandInAnyOrder) {
  const auto t = KernelTable::read("us,note,gpu,type,shape,operator\r\n5,x,,,4096,memory\r\n", "");
  EXPECT_EQ(time_of(t, {"memory", "", {4096}}).lasts, 5000);
}

TEST(KernelTable, WhatCannotBeIsRefusedWithItsLine) {
  const auto why = [](const std::string& csv) {
    try {
      KernelTable::read(csv, "");
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string("it was read");
  };
  EXPECT_THAT(why("operator,shape,type,us\n"), HasSubstr("line 1: there is no column gpu"));
  EXPECT_THAT(why(kHeader + std::string("mm,8x8,bf16,,1\nmm,8xa,bf16,,1\n")), HasSubstr("line 3"));
  EXPECT_THAT(why(kHeader + std::string("mm,8x8x8,bf16,,0\n")), HasSubstr("line 2"));
  EXPECT_THAT(why(kHeader + std::string("mm,8x8x8,bf16\n")), HasSubstr("line 2: a row has fewer cells"));
  EXPECT_THAT(why(""), HasSubstr("empty"));
}

}  // namespace
}  // namespace sweep::phantom
