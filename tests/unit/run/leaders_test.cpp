// The step time at which a trial is clearly slower than the best so far.
#include "orchestrator/run/leaders.h"

#include "tests/unit/run/sweep_runner_fixture.h"

namespace sweep::run {
namespace {

class LeadersTest : public SweepRunnerTest {
 protected:
  std::optional<double> bound(const Trial& leader, double leaders_ms, const Trial& of) {
    settings_.sweep = sweep_, settings_.measure.early_stop = true;
    boost::asio::io_context io;
    FakeLauncher launcher(io, {}, {}, 0);
    const RunContext context{*store_, settings_, observer_, launcher};
    Leaders leaders(context);
    const auto before = leaders.bound_for(of);
    EXPECT_TRUE(before && !*before) << "nothing ran yet";
    Metrics m;
    m.step_ms = m.step_ms_ci_high = leaders_ms;
    leaders.add(leader, Outcome::kOk, m);
    const auto out = leaders.bound_for(of);
    EXPECT_TRUE(out);
    return out ? *out : std::nullopt;
  }
};

Trial of_batch(i64 size) {
  Trial t;
  t.model = "tiny", t.spec.layers = 1, t.seq_len = 64;
  t.micro_batch_size = t.global_batch_size = size;
  return t;
}

TEST_F(LeadersTest, TwiceTheTokensMayTakeTwiceTheTime) {
  EXPECT_EQ(bound(of_batch(1), 10, of_batch(2)), 20);
}

TEST_F(LeadersTest, PaddingIsNoReasonForAStepToBeSlow) {
  Trial packed = of_batch(1), padded = of_batch(2);
  packed.lengths = padded.lengths = "fixed 4", packed.packing = true;
  EXPECT_EQ(bound(packed, 10, padded), 10 * 8.0 / 64) << "8 tokens of documents against 64";
  EXPECT_EQ(bound(padded, 10, packed), 10 * 64 / 8.0);
}

}  // namespace
}  // namespace sweep::run
