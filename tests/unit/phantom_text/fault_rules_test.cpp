#include "worker/phantom/fault_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <stdexcept>
#include <string>

namespace sweep::phantom {
namespace {

TEST(FaultRules, NoTextIsNoFault) {
  EXPECT_TRUE(fault_rules("").empty());
}

TEST(FaultRules, EveryKindIsKnownByItsName) {
  const auto rules = fault_rules(
      "malloc_oom;cublas_oom;nccl_oom;launch_failure;nccl_error;hang;host_hang;abort_hang;xid;slow_gpu;slow_"
      "link;module_oom");
  ASSERT_EQ(rules.size(), static_cast<std::size_t>(Fault::kCount));
  for (std::size_t i = 0; i < rules.size(); ++i) EXPECT_EQ(rules[i].fault, static_cast<Fault>(i));
}

TEST(FaultRules, WithoutKeysTheFirstOfAnyRankAndDeviceIsStruck) {
  const FaultRule rule = fault_rules("xid").front();
  EXPECT_EQ(rule.at, 1);
  EXPECT_EQ(rule.times, 1);
  EXPECT_EQ(rule.rank, -1);
  EXPECT_EQ(rule.device, -1);
  EXPECT_EQ(rule.factor, 2);
  EXPECT_EQ(rule.code, 79u);
}

TEST(FaultRules, KeysAreRead) {
  const auto rules = fault_rules("xid:at=12:times=3:rank=5:device=15:code=48;slow_link:factor=1.5");
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].at, 12);
  EXPECT_EQ(rules[0].times, 3);
  EXPECT_EQ(rules[0].rank, 5);
  EXPECT_EQ(rules[0].device, 15);
  EXPECT_EQ(rules[0].code, 48u);
  EXPECT_EQ(rules[1].factor, 1.5);
}

TEST(FaultRules, ADeviceThatIsFullStaysFullUnlessTold) {
  EXPECT_EQ(fault_rules("malloc_oom:at=4").front().times, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(fault_rules("malloc_oom:at=4:times=1").front().times, 1);
}

TEST(FaultRules, WhatIsNoInstructionIsRefused) {
  for (const char* text : {"oom",
                           "malloc_oom ",
                           "xid;;hang",
                           ";",
                           ":",
                           "xid::at=1",
                           "xid:at",
                           "xid:at=",
                           "xid:=1",
                           "xid:at=1=2",
                           "xid:at= 1",
                           "xid:at=+1",
                           "xid:at=0x10",
                           "xid:at=1e",
                           "xid:at=nan",
                           "slow_gpu:factor=inf",
                           "slow_gpu:factor=nan",
                           "slow_gpu:factor=-1",
                           "slow_gpu:factor=1e7",
                           "xid:at=0",
                           "xid:at=-1",
                           "xid:at=1.5",
                           "xid:at=1e16",
                           "xid:times=0",
                           "xid:rank=-1",
                           "xid:rank=0.5",
                           "xid:rank=1e9",
                           "xid:device=16",
                           "xid:code=-1",
                           "xid:code=1e18",
                           "xid:when=1",
                           "xid:AT=1",
                           "\xff\xfe",
                           "xid:at=1\n"})
    EXPECT_THROW(fault_rules(text), std::runtime_error) << text;
  EXPECT_THROW(fault_rules(std::string_view("xid\0", 4)), std::runtime_error);
  EXPECT_THROW(fault_rules("xid:at=" + std::string(100'000, '9')), std::runtime_error);
}

// Whatever it is given, it answers or throws std::runtime_error, and a rule it gives can be kept.
TEST(FaultRules, AnyTextIsReadOrRefused) {
  constexpr std::string_view kPieces[] = {"xid",    "malloc_oom", ":",     ";", "=",    "at", "rank",
                                          "factor", "-",          "1e308", "7", "\xff", " "};
  std::mt19937 dice(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (int pieces = static_cast<int>(dice() % 12); pieces > 0; --pieces)
      text += kPieces[dice() % std::size(kPieces)];
    try {
      for (const FaultRule& rule : fault_rules(text)) {
        EXPECT_GE(rule.at, 1) << text;
        EXPECT_GE(rule.times, 1) << text;
        EXPECT_LT(rule.device, 16) << text;
        EXPECT_TRUE(rule.factor >= 0 && rule.factor <= 1e6) << text;
      }
    } catch (const std::runtime_error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace sweep::phantom
