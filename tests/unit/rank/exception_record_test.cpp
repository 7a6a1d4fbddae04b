#include "worker/rank/exception_record.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::rank {
namespace {

template <class Throw>
RankRecord record_of(Throw&& thrower, const FailureFacts& facts = {}) {
  RankRecord record;
  try {
    thrower();
  } catch (...) {
    record_exception(record, facts);
  }
  return record;
}

TEST(AttemptReports, DeviceMemoryIsAnOom) {
  const auto record = record_of([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "no room"); });
  EXPECT_EQ(record.outcome, Outcome::kOom);
  EXPECT_EQ(record.oom_kind, OomKind::kDevice);
  EXPECT_NE(record.message.find("no room"), std::string::npos);
}

TEST(AttemptReports, HostMemoryIsAnOomOfTheOtherKind) {
  const auto record = record_of([] { throw std::bad_alloc(); });
  EXPECT_EQ(record.outcome, Outcome::kOom);
  EXPECT_EQ(record.oom_kind, OomKind::kHost);
}

TEST(AttemptReports, WhatIsNotImplementedIsUnsupported) {
  const auto record = record_of([] { TORCH_CHECK_NOT_IMPLEMENTED(false, "no such kernel"); });
  EXPECT_EQ(record.outcome, Outcome::kUnsupported);
}

TEST(AttemptReports, ALostPeerIsAConsequentialCrash) {
  const auto record = record_of([] { TORCH_CHECK_WITH(DistBackendError, false, "rank 1 died"); });
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_TRUE(record.consequential);
}

TEST(AttemptReports, AMessageThatTalksOfMemoryIsStillACrash) {
  const auto record = record_of([] { throw std::runtime_error("CUDA out of memory"); });
  EXPECT_EQ(record.outcome, Outcome::kCrash);
  EXPECT_FALSE(record.consequential);
  EXPECT_FALSE(record.oom_kind);
}

constexpr i64 kMebi = i64{1} << 20;

FailureFacts on_gpu(i64 free_bytes, LibraryStatus status, bool cublas = true) {
  return {true, true, free_bytes, cublas, status};
}
[[noreturn]] void fail_in_nccl() {
  TORCH_CHECK_WITH(DistBackendError, false, "unhandled cuda error");
}
[[noreturn]] void fail_in_cublas() {
  TORCH_CHECK(false, "CUDA error");
}

TEST(AttemptReports, NcclWithoutMemoryForItsBuffersIsAnOom) {
  const LibraryStatus status{0, kNcclUnhandledCudaError};
  EXPECT_EQ(record_of(fail_in_nccl, on_gpu(3 * kMebi, status)).outcome, Outcome::kOom);
  EXPECT_EQ(record_of(fail_in_nccl, on_gpu(3 * kMebi, {})).outcome, Outcome::kCrash)
      << "a peer's end, seen by the watchdog";
  EXPECT_EQ(record_of(fail_in_nccl, on_gpu(40'000 * kMebi, status)).outcome, Outcome::kCrash);
}

TEST(AttemptReports, ARankWhoseOwnGpuBrokeIsTheCauseAndNotAConsequence) {
  FailureFacts broken = on_gpu(0, {0, kNcclUnhandledCudaError});
  broken.driver_answers = false;
  const auto own = record_of(fail_in_nccl, broken);
  EXPECT_EQ(own.outcome, Outcome::kCrash);
  EXPECT_FALSE(own.consequential);
  EXPECT_FALSE(record_of(fail_in_nccl, on_gpu(0, {0, kNcclInvalidUsage})).consequential);
  EXPECT_TRUE(record_of(fail_in_nccl, on_gpu(40'000 * kMebi, {0, 6})).consequential) << "ncclRemoteError";
}

TEST(AttemptReports, CublasWithoutMemoryIsAnOom) {
  EXPECT_EQ(record_of(fail_in_cublas, on_gpu(40'000 * kMebi, {kCublasAllocFailed, 0})).outcome,
            Outcome::kOom);
  const LibraryStatus not_made{kCublasNotInitialized, 0};
  EXPECT_EQ(record_of(fail_in_cublas, on_gpu(3 * kMebi, not_made, false)).outcome, Outcome::kOom);
  EXPECT_EQ(record_of(fail_in_cublas, on_gpu(40'000 * kMebi, not_made, false)).outcome, Outcome::kCrash);
  EXPECT_EQ(record_of(fail_in_cublas, on_gpu(3 * kMebi, {})).outcome, Outcome::kCrash)
      << "another error on a full GPU";
}

TEST(AttemptReports, CublasThatCannotLoadItsKernelsOnAFullGpuIsAnOom) {
  for (const int status : {kCublasExecutionFailed, kCublasInternalError}) {
    FailureFacts facts = on_gpu(3 * kMebi, {status, 0});
    EXPECT_EQ(record_of(fail_in_cublas, facts).oom_kind, OomKind::kDevice) << status;
    facts.driver_answers = false;
    EXPECT_EQ(record_of(fail_in_cublas, facts).outcome, Outcome::kCrash)
        << status << ": a kernel that failed";
    facts = on_gpu(40'000 * kMebi, {status, 0});
    EXPECT_EQ(record_of(fail_in_cublas, facts).outcome, Outcome::kCrash) << status << ": memory is left";
  }
}

TEST(AttemptReports, TheDriversOwnRefusalIsAnOom) {
  const auto refuse = [](int code) {
    return [code] { throw c10::AcceleratorError({"f", "g", 1}, code, "refused"); };
  };
  EXPECT_EQ(record_of(refuse(2)).oom_kind, OomKind::kDevice);
  EXPECT_EQ(record_of(refuse(719)).outcome, Outcome::kCrash) << "cudaErrorLaunchFailure";
}

TEST(AttemptReports, PinnedMemoryIsTheHosts) {
  const auto record = record_of([] { throw memory::HostMemoryRefused(4096); });
  EXPECT_EQ(record.outcome, Outcome::kOom);
  EXPECT_EQ(record.oom_kind, OomKind::kHost);
  EXPECT_EQ(record.oom_asked_bytes, 4096);
}

TEST(AttemptReports, EvenAnUnknownTypeIsACrash) {
  EXPECT_EQ(record_of([] { throw 7; }).outcome, Outcome::kCrash);
}

}  // namespace
}  // namespace sweep::rank
