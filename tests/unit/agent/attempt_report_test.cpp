// AttemptReport: what an attempt's end is put down to.
#include "worker/agent/node/attempt_report.h"

#include <gtest/gtest.h>

namespace sweep::agent {
namespace {

struct Dropped final : MessageSink {
  void send(AgentMessage) override {}
};

EndCause cause_of(const AgentEvidence& evidence) {
  Dropped sink;
  const NodePart part;
  AttemptReport report(sink, part);
  report.rank_failed(evidence);
  return report.cause().value_or(EndCause::kDone);
}

TEST(AttemptReport, AFailedRankIsTheTrialsFault) {
  EXPECT_EQ(cause_of({}), EndCause::kRankFailed);
}

TEST(AttemptReport, ARankThatFoundNoRoomIsTheNodesFault) {
  AgentEvidence full;
  full.why = "rank 0 left no record: the disk is full";
  EXPECT_EQ(cause_of(full), EndCause::kAgentStopping);
}

}  // namespace
}  // namespace sweep::agent
