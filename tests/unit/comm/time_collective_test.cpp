// The measured collectives give the right numbers over real ranks, and a backend that moves nothing is found
// out.
#include "bench_kernels/comm/time_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/comm/forked_ranks.h"

namespace sweep::comm {
namespace {

using ::sweep::testing::require;
using ::sweep::testing::run_ranks;
using ::testing::Each;

CollectiveTiming time_over(const BackendPtr& backend, Kind kind, std::int64_t bytes) {
  Channel channel("world", backend, nullptr);
  return time_collective(
      channel, kind, bytes, c10::Device(c10::kCPU), [] {}, 1e-4);
}

class TimeCollective : public ::testing::TestWithParam<CommBackend> {};

TEST_P(TimeCollective, GivesTheRightNumbersOverRealRanks) {
  for (const int world : {2, 3})
    EXPECT_THAT(run_ranks(world,
                          [&](const GroupOptions& options) {
                            const BackendPtr backend = make_backend(GetParam(), options);
                            for (const Kind kind : kMeasuredKinds) {
                              const auto timing = time_over(backend, kind, 1024);
                              require(timing.wrong == 0 && timing.seconds > 0, name_of(kind));
                              require(timing.bytes == 1024 / 4 / world * 4 * world,
                                      "whole elements of every rank");
                            }
                          }),
                Each(0));
}

INSTANTIATE_TEST_SUITE_P(Cpu, TimeCollective, ::testing::Values(CommBackend::kShm, CommBackend::kGloo),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(TimeCollectives, FindABackendOutThatMovesNothing) {
  EXPECT_THAT(run_ranks(1,
                        [&](const GroupOptions&) {
                          for (const Kind kind : kMeasuredKinds)
                            require(time_over(make_fake(1, 2), kind, 1024).wrong > 0, name_of(kind));
                        }),
              Each(0));
}

}  // namespace
}  // namespace sweep::comm
