// Pipeline parallelism against one rank: loss, gradients and parameters; bytes on the wire against the
// formula; the peak of every stage against the dry run.
#include <gtest/gtest.h>

#include <cstdio>

#include "bench_kernels/shape/stage_split.h"
#include "tests/parity/layouts.h"
#include "tests/parity/rank_costs.h"

namespace sweep::testing {
namespace {

constexpr int kSteps = 3;

Trial tied_trial() {
  Trial t = tiny_trial();
  t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true;
  return t;
}
Trial gpt2_trial() {
  Trial t = tied_trial();
  t.spec.family = "gpt2", t.spec.max_positions = 32, t.spec.linear_bias = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  return t;
}

struct Case {
  const char* name;
  Trial (*model)();
  i64 dp, pp;
  Schedule schedule = Schedule::k1f1b;
  i64 vpp = 1;
  Recompute recompute = Recompute::kNone;
  i64 every = 1;
  bool offload = false;
  CommBackend backend = CommBackend::kShm;
};

Trial trial_of(const Case& c) {
  Trial t = c.model();
  t.schedule = c.schedule, t.vpp = c.vpp, t.recompute = c.recompute, t.recompute_every = c.every;
  t.activation_offload = c.offload, t.backend = c.backend;
  if (c.vpp == 2 && c.pp == 4) t.spec.layers = 8;
  return with_degrees(t, c.dp, 1, c.pp, 1);
}

class Pipeline : public ::testing::TestWithParam<Case> {};

TEST_P(Pipeline, GivesTheLossTheGradientsAndTheParametersOfOneRank) {
  const Case& c = GetParam();
  const Trial trial = trial_of(c);
  Trial one = c.model();
  one.spec.layers = trial.spec.layers;
  const WholeRun ranks = run_layout(trial, kSteps);
  EXPECT_EQ(ranks.faults, std::vector<std::string>{});
  const Distance d = distance(ranks, run_layout(with_degrees(one, 1, 1, 1, 1), kSteps));
  std::printf("| %-28s | %8.1e | %8.1e | %8.1e |\n", c.name, d.loss, d.gradient, d.value);
  EXPECT_LT(d.loss, 1e-5);
  EXPECT_LT(d.gradient, 1e-5) << d.worst;
  EXPECT_LT(d.value, 1e-3) << "a gradient near zero decides the sign of Adam's first steps";
}

TEST_P(Pipeline, SendsWhatTheFormulaSaysAndPeaksWhereTheDryRunSays) {
  const Trial trial = trial_of(GetParam());
  const std::vector<RankCost> costs = costs_of_ranks(trial);
  ASSERT_EQ(costs.size(), static_cast<std::size_t>(trial.world()));
  const auto dry = dry_peaks(trial);
  const i64 ranks_of_stage = trial.world() / trial.pp;
  for (i64 rank = 0; rank < trial.world(); ++rank) {
    const RankCost& cost = costs[static_cast<std::size_t>(rank)];
    const i64 stage = rank / ranks_of_stage;
    const auto expected = shape::pipeline_traffic(trial, stage);
    EXPECT_EQ(cost.sends, expected.sends) << "rank " << rank;
    EXPECT_EQ(cost.receives, expected.receives) << "rank " << rank;
    EXPECT_EQ(cost.pipeline_bytes, expected.bytes) << "rank " << rank;
    if (trial.backend == CommBackend::kShm) {
      EXPECT_EQ(cost.peak_bytes, dry[static_cast<std::size_t>(stage)]) << "rank " << rank;
    }
  }
}

const Case kCases[] = {
    {"pp2_gpipe", tiny_trial, 1, 2, Schedule::kGpipe},
    {"pp2_1f1b", tiny_trial, 1, 2},
    {"pp4_gpipe", tiny_trial, 1, 4, Schedule::kGpipe},
    {"pp4_1f1b", tiny_trial, 1, 4},
    {"pp2_interleaved_vpp2", tiny_trial, 1, 2, Schedule::kInterleaved, 2},
    {"pp4_interleaved_vpp2", tiny_trial, 1, 4, Schedule::kInterleaved, 2},
    {"pp2_interleaved_vpp1", tiny_trial, 1, 2, Schedule::kInterleaved, 1},
    {"pp2_tied", tied_trial, 1, 2},
    {"pp4_tied", tied_trial, 1, 4},
    {"pp2_interleaved_tied", tied_trial, 1, 2, Schedule::kInterleaved, 2},
    {"pp2_gpt2", gpt2_trial, 1, 2},
    {"dp2_pp2", tiny_trial, 2, 2},
    {"dp2_pp2_interleaved_tied", tied_trial, 2, 2, Schedule::kInterleaved, 2},
    {"dp2_pp2_gloo", tiny_trial, 2, 2, Schedule::k1f1b, 1, Recompute::kNone, 1, false, CommBackend::kGloo},
    {"selective", tiny_trial, 1, 1, Schedule::k1f1b, 1, Recompute::kSelective},
    {"full", tiny_trial, 1, 1, Schedule::k1f1b, 1, Recompute::kFull},
    {"full_every2", tiny_trial, 1, 1, Schedule::k1f1b, 1, Recompute::kFull, 2},
    {"full_every3", gpt2_trial, 1, 1, Schedule::k1f1b, 1, Recompute::kFull, 3},
    {"offload", tiny_trial, 1, 1, Schedule::k1f1b, 1, Recompute::kNone, 1, true},
    {"offload_full_every2", tiny_trial, 1, 1, Schedule::k1f1b, 1, Recompute::kFull, 2, true},
    {"offload_selective_gpt2", gpt2_trial, 1, 1, Schedule::k1f1b, 1, Recompute::kSelective, 1, true},
    {"pp2_selective", tiny_trial, 1, 2, Schedule::k1f1b, 1, Recompute::kSelective},
    {"pp2_full_every2_offload", tiny_trial, 1, 2, Schedule::k1f1b, 1, Recompute::kFull, 2, true},
    {"pp4_interleaved_full_offload", tied_trial, 1, 4, Schedule::kInterleaved, 2, Recompute::kFull, 1, true},
    {"dp2_full", tiny_trial, 2, 1, Schedule::k1f1b, 1, Recompute::kFull},
    {"dp2_pp2_full_offload", tied_trial, 2, 2, Schedule::k1f1b, 1, Recompute::kFull, 1, true},
};

INSTANTIATE_TEST_SUITE_P(Cases, Pipeline, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PipelineMessages, LargerThanAMailboxPass) {
  Trial t = tiny_trial();
  t.spec.hidden_size = 256, t.spec.heads = t.spec.kv_heads = 2, t.spec.head_dim = 128, t.spec.layers = 2;
  t.seq_len = 32, t.micro_batch_size = 128, t.global_batch_size = 256;  // 4 MiB a message
  t.grad_bucket_mb = 1;                                                 // several buckets
  const WholeRun ranks = run_layout(with_degrees(t, 2, 1, 2, 1), 1);
  EXPECT_EQ(ranks.faults, std::vector<std::string>{});
}

TEST(Recomputation, NeedsLessMemoryTheMoreIsComputedAgain) {
  const auto peak = [](Recompute recompute, i64 every, bool offload) {
    Trial t = tiny_trial();
    t.spec.layers = 8, t.seq_len = 128, t.attention = AttentionKind::kMath, t.activation_offload = offload;
    t.recompute = recompute, t.recompute_every = every;
    return dry_peaks(t).front();
  };
  const i64 none = peak(Recompute::kNone, 1, false), full = peak(Recompute::kFull, 1, false);
  EXPECT_LT(peak(Recompute::kSelective, 1, false), none);
  EXPECT_LT(full, peak(Recompute::kSelective, 1, false));
  EXPECT_LT(full, peak(Recompute::kFull, 8, false));
  EXPECT_LT(peak(Recompute::kNone, 1, true), none);
}

// A later step reads the updated values, not copies of an earlier step.
TEST(Recomputation, ForgetsCopiesThatWereKeptForBackward) {
  Trial t = tiny_trial();
  t.spec.layers = 4, t.dp = 2, t.zero = 3, t.recompute = Recompute::kFull, t.recompute_every = 2;
  t = with_degrees(t, 2, 1, 1, 1);
  const WholeRun resharded = run_layout(t, kSteps);
  t.reshard_after_forward = false;
  const Distance d = distance(run_layout(t, kSteps), resharded);
  EXPECT_EQ(d.loss, 0);
  EXPECT_EQ(d.value, 0) << d.worst;
}

}  // namespace
}  // namespace sweep::testing
