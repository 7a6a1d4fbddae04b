// The strategies over Gloo against one rank; over shared memory the other tests of this folder compare them.
#include "tests/parity/parity_table.h"

namespace sweep::testing {
namespace {

constexpr int kGlooSteps = 2;

Trial over_gloo(i64 dp, i64 tp, i64 pp, i64 cp, i64 ep = 1) {
  Trial t = tiny_trial();
  t.backend = CommBackend::kGloo;
  return with_degrees(t, dp, tp, pp, cp, ep);
}
Trial with(Trial t, void (*change)(Trial&)) {
  change(t);
  return t;
}
void split_backward(Trial& t) {
  t.schedule = Schedule::kZeroBubble;
}
void mixtral(Trial& t) {
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
  t.routing = Routing::kLearned;
}

TEST(GlooParity, Splits) {
  ParityTable table(kGlooSteps);
  table.expect_equal("tp 2", over_gloo(1, 2, 1, 1));
  if (long_run()) table.expect_equal("tp 2 + sp", with(over_gloo(1, 2, 1, 1), [](Trial& t) { t.sp = true; }));
  // On 4 ranks Gloo's threads, which look for messages all the time, take half a minute.
  const i64 overlapping = long_run() ? 4 : 2;
  table.expect_equal("tp + sp + overlap",
                     with(over_gloo(1, overlapping, 1, 1), [](Trial& t) { t.sp = t.tp_overlap = true; }));
  table.expect_equal("tp 4, kv 2", with(over_gloo(1, 4, 1, 1), [](Trial& t) { t.spec.kv_heads = 2; }));
  table.expect_equal("tp 2, kv 1 + sp",
                     with(over_gloo(1, 2, 1, 1), [](Trial& t) { t.spec.kv_heads = 1, t.sp = true; }));
  if (long_run()) table.expect_equal("cp 2", over_gloo(1, 1, 1, 2));
  table.expect_equal("cp 4", over_gloo(1, 1, 1, 4));
  table.expect_equal("cp 2 all-to-all",
                     with(over_gloo(1, 1, 1, 2), [](Trial& t) { t.cp_comm_type = CpCommType::kAllToAll; }));
  table.expect_equal("tp 2 x cp 2 + sp", with(over_gloo(1, 2, 1, 2), [](Trial& t) { t.sp = true; }));
}

TEST(GlooParity, Pipelines) {
  ParityTable table(kGlooSteps);
  if (long_run()) table.expect_equal("pp 2", over_gloo(1, 1, 2, 1));
  table.expect_equal("pp 4 gpipe",
                     with(over_gloo(1, 1, 4, 1), [](Trial& t) { t.schedule = Schedule::kGpipe; }));
  table.expect_equal("pp 2 x 2 chunks", with(over_gloo(1, 1, 2, 1), [](Trial& t) {
                       t.schedule = Schedule::kInterleaved, t.vpp = 2;
                     }));
  table.expect_equal("dp 2 x pp 2, tied, recompute full", with(over_gloo(2, 1, 2, 1), [](Trial& t) {
                       t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true;
                       t.recompute = Recompute::kFull;
                     }));
  table.expect_equal("tp 2 x pp 2 x cp 2 + sp", with(over_gloo(1, 2, 2, 2), [](Trial& t) { t.sp = true; }));
  if (long_run()) table.expect_equal("pp 2 zero_bubble", with(over_gloo(1, 1, 2, 1), split_backward));
  table.expect_equal("pp 4 zero_bubble", with(over_gloo(1, 1, 4, 1), split_backward));
  table.expect_equal("dp 2 x pp 2 zero_bubble, zero 3",
                     with(over_gloo(2, 1, 2, 1), [](Trial& t) { split_backward(t), t.zero = 3; }));
  table.expect_equal("tp 2 x pp 2 zero_bubble + sp",
                     with(over_gloo(1, 2, 2, 1), [](Trial& t) { split_backward(t), t.sp = true; }));
}

TEST(GlooParity, Experts) {
  ParityTable table(kGlooSteps);
  table.expect_equal("ep 2", with(over_gloo(2, 1, 1, 1, 2), mixtral));
  table.expect_equal("ep 4, zero 3",
                     with(over_gloo(4, 1, 1, 1, 4), [](Trial& t) { mixtral(t), t.zero = 3; }));
  table.expect_equal("ep 2 x tp 2 + sp",
                     with(over_gloo(2, 2, 1, 1, 2), [](Trial& t) { mixtral(t), t.sp = true; }));
  table.expect_equal("ep 2 balanced", with(over_gloo(2, 1, 1, 1, 2),
                                           [](Trial& t) { mixtral(t), t.routing = Routing::kBalanced; }));
  table.expect_equal("ep 2 skewed", with(over_gloo(2, 1, 1, 1, 2),
                                         [](Trial& t) { mixtral(t), t.routing = Routing::kSkewed; }));
}

// The lower precisions have their distance from fp32 over shared memory too (model_state_test.cpp): here the
// two backends, whose sums are in another order, against each other.
TEST(GlooParity, LowerPrecisionsAreThoseOfSharedMemory) {
  for (const Precision precision :
       {Precision::kBf16, Precision::kBf16Master, Precision::kBf16Mixed, Precision::kFp16}) {
    Trial gloo = over_gloo(2, 1, 1, 1);
    gloo.precision = precision, gloo.zero = 2;
    Trial shm = gloo;
    shm.backend = CommBackend::kShm;
    const WholeRun a = run_layout(gloo, kGlooSteps), b = run_layout(shm, kGlooSteps);
    EXPECT_EQ(a.faults, std::vector<std::string>{}) << to_string(precision);
    const Distance d = distance(a, b);
    std::printf("| %-36s | %.1e | %.1e  | %.1e   |\n", to_string(precision).data(), d.loss, d.gradient,
                d.value);
    EXPECT_LT(d.loss, 1e-3) << to_string(precision);
    EXPECT_LT(d.gradient, 2e-2) << to_string(precision) << ": " << d.worst;
    EXPECT_LT(d.value, 1e-2) << to_string(precision);
  }
}

}  // namespace
}  // namespace sweep::testing
