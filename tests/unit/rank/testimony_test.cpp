#include "worker/rank/testimony.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace sweep::rank {
namespace {

template <class Throw>
RankRecord testimony_of(Throw&& thrower) {
  RankRecord record;
  try {
    thrower();
  } catch (...) {
    testify_exception(record);
  }
  return record;
}

TEST(Testimony, DeviceMemoryIsAnOom) {
  const auto record = testimony_of([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "no room"); });
  EXPECT_EQ(record.outcome, Outcome::kOom);
  EXPECT_EQ(record.oom_kind, OomKind::kDevice);
  EXPECT_NE(record.message.find("no room"), std::string::npos);
}

TEST(Testimony, HostMemoryIsAnOomOfTheOtherKind) {
  const auto record = testimony_of([] { throw std::bad_alloc(); });
  EXPECT_EQ(record.outcome, Outcome::kOom);
  EXPECT_EQ(record.oom_kind, OomKind::kHost);
}

TEST(Testimony, WhatIsNotImplementedIsUnsupported) {
  const auto record = testimony_of([] { TORCH_CHECK_NOT_IMPLEMENTED(false, "no such kernel"); });
  EXPECT_EQ(record.outcome, Outcome::kUnsupported);
}

TEST(Testimony, ALostPeerIsAConsequentialCrash) {
  const auto record = testimony_of([] { TORCH_CHECK_WITH(DistBackendError, false, "rank 1 died"); });
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_TRUE(record.consequential);
}

TEST(Testimony, AMessageThatTalksOfMemoryIsStillACrash) {
  const auto record = testimony_of([] { throw std::runtime_error("CUDA out of memory"); });
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_FALSE(record.consequential);
  EXPECT_FALSE(record.oom_kind);
}

TEST(Testimony, EvenAnUnknownTypeIsACrash) {
  EXPECT_EQ(testimony_of([] { throw 7; }).outcome, Outcome::kCrash);
}

}  // namespace
}  // namespace sweep::rank
