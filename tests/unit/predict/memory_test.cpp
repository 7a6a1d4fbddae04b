#include "orchestrator/predict/memory.h"

#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/predictor.h"
#include "tests/support/model_trial.h"

namespace sweep::predict {
namespace {

TEST(Memory, StatesFollowTheZeroFormulas) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  // A few elements of padding, so that shards are whole.
  const auto expect_states = [&](double bytes) {
    EXPECT_NEAR(estimate_memory(t).states(), bytes, 1e-6 * bytes);
  };
  const double n = 8030261248.0;
  expect_states(8 * n);
  t.precision = Precision::kFp32;
  expect_states(16 * n);
  t.zero = 1;
  expect_states(8 * n + 8 * n / 8);
  t.zero = 2;
  expect_states(4 * n + 12 * n / 8);
  t.zero = 3;
  expect_states(16 * n / 8);
  t.dp_shard = 4;
  expect_states(16 * n / 4);
}

// One micro-step's forward is over before there are gradients; the next one's finds them.
TEST(Memory, GradientsAreThereFromTheFirstBackwardOn) {
  using shape::MemoryPart;
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.spec.layers = 8, t.micro_batch_size = 4,
  t.global_batch_size = 8 * 4;  // activations are more than gradients
  const MemoryEstimate one = estimate_memory(t);
  t.grad_accum = 2, t.global_batch_size *= 2;
  const MemoryEstimate two = estimate_memory(t);
  const double all = two.parts().all_gradients;
  EXPECT_EQ(one.parts().all_gradients, all);
  EXPECT_EQ(two.of(MemoryPart::kGradients), all);
  EXPECT_LT(one.of(MemoryPart::kGradients), all / 2);
  EXPECT_GT(two.total() - one.total(), all / 2);
  EXPECT_EQ(one.states(), two.states());
}

TEST(Memory, RowsOfPaddingCount) {
  using shape::MemoryPart;
  Trial t = model_trial("gpt2", "h100-sxm-80gb");
  t.seq_len = 1024, t.tp = 4, t.dp = 2;
  const MemoryEstimate least = estimate_memory(t);  // 50,260 rows
  t.vocab_multiple = 128;                           // 50,688 rows, of one tied table
  const MemoryEstimate more = estimate_memory(t);
  EXPECT_NEAR(more.of(MemoryPart::kWeights) - least.of(MemoryPart::kWeights), 2 * 107.0 * 768, 512);
  EXPECT_NEAR(more.of(MemoryPart::kLogits) - least.of(MemoryPart::kLogits), 1024 * 107.0 * 2, 2048);
}

TEST(Memory, ActivationsGrowAsTheyMust) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.grad_accum = 2, t.global_batch_size *= 2;  // gradients are there: the fullest moment is always the same
  const auto kept = [](const Trial& of) { return estimate_memory(of).of(shape::MemoryPart::kActivations); };
  const double one = kept(t);
  Trial twice = t, longer = t, math = t, full = t;
  twice.micro_batch_size = 2;
  longer.seq_len = 2 * t.seq_len;
  math.attention = AttentionKind::kMath;
  full.recompute = Recompute::kFull;
  EXPECT_NEAR(kept(twice), 2 * one, 1e-3 * one);
  EXPECT_NEAR(kept(longer), 2 * one, 1e-3 * one);  // flash attention: linear in the length
  // 32 layers x 32 heads x 4096^2 pairs x 2 bytes of softmax, in place of 4 bytes of log-sum-exp per head and
  // token.
  EXPECT_NEAR(kept(math) - one, 32.0 * 32 * 4096 * (4096 * 2 - 4), 0.05 * one);
  EXPECT_LT(kept(full), one / 4);
}

TEST(Memory, SequenceParallelismDividesWhatTensorParallelismLeavesWhole) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.tp = 8, t.dp = 1;
  const double whole = estimate_memory(t).total();
  t.sp = true;
  const double tensors = 32 * 4;  // tensors of hidden_size: four a layer; less what is gathered for a moment
  EXPECT_NEAR(whole - estimate_memory(t).total(), tensors * 2 * 4096 * 4096 * 7 / 8, 0.1 * whole);
}

// Where a stage has one layer, the loss is the fullest moment of the last.
TEST(Memory, LogitsStandOnTheLastStageAndNeverWhole) {
  using shape::MemoryPart;
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.spec.layers = t.pp = 8, t.dp = 1, t.grad_accum = t.global_batch_size = 8;
  const double whole = 4096 * 128256.0 * 2;  // a sequence's logits in 16 bit
  const MemoryEstimate all = estimate_memory(t, shape::Ranks::kAll);
  for (std::size_t i = 0; i + 1 < all.of_ranks.size(); ++i)
    EXPECT_EQ(all.of_ranks[i][MemoryPart::kLogits], 0) << i;
  EXPECT_GT(all.of_ranks.back()[MemoryPart::kLogits], 0);
  EXPECT_LT(all.of_ranks.back()[MemoryPart::kLogits], whole);
}

// Ranks that hold no more than an earlier one are left out, and the fullest is found all the same.
TEST(Memory, TheFullestRankIsThatOfAllRanks) {
  i64 compared = 0;
  for (const char* model : {"llama3-8b", "gpt2-large", "mixtral-8x7b"})
    for (const Schedule schedule :
         {Schedule::kGpipe, Schedule::k1f1b, Schedule::kInterleaved, Schedule::kZeroBubble})
      for (const i64 pp : {2, 4, 6, 8})
        for (const i64 micros : {1, 3, 8, 24})
          for (const i64 zero : {0, 3})
            for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
              Trial t = model_trial(model, "h100-sxm-80gb");
              t.pp = pp, t.dp = 2, t.zero = zero, t.recompute = recompute, t.schedule = schedule;
              t.gpus_per_node = 2 * pp, t.vpp = schedule == Schedule::kInterleaved ? 2 : 1;
              t.grad_accum = micros, t.global_batch_size = 2 * micros, t.reshard_after_forward = micros > 3;
              if (plan::first_objection(t)) continue;
              const MemoryEstimate all = estimate_memory(t, shape::Ranks::kAll), found = estimate_memory(t);
              EXPECT_EQ(found.fullest, all.fullest)
                  << t.model << " pp " << pp << ", " << micros << " micro-steps";
              EXPECT_EQ(found.total(), all.total());
              ++compared;
            }
  EXPECT_GT(compared, 200);
}

TEST(Memory, ExpertsAreDividedOverTheirRanks) {
  Trial t = model_trial("mixtral-8x7b", "h100-sxm-80gb");
  const double whole = estimate_memory(t).states();
  t.ep = 8;
  EXPECT_LT(estimate_memory(t).states(), whole / 4);
}

// Against the dry run of the same trial: the head's norm has no backward there, which by library operators takes most.
TEST(Memory, AnEvaluationTakesNoRoomForABackward) {
  Trial t = model_trial("llama3.2-1b", "h100-sxm-80gb");
  t.spec.layers = 6, t.dp = 1, t.tp = t.gpus_per_node = 8, t.seq_len = 1024,
  t.precision = Precision::kBf16Mixed;
  t.micro_batch_size = t.global_batch_size = 2, t.eval_batch_size = 32;
  t.attention = AttentionKind::kMath, t.optimizer = OptimizerKind::kSgdMomentum;
  t.fused_kernels = FusedKernels::kNoNorm;
  EXPECT_NEAR(estimate_memory(t).total() / 1e6, 1548.6, 0.02 * 1548.6);
}

// Hot experts are those of the first rank; the fullest counts, whichever it is.
TEST(Memory, TheRankWithMostRowsCountsHoweverFewChooseTheHotExperts) {
  Trial t = model_trial("mixtral-8x7b", "h100-sxm-80gb");
  t.dp = t.ep = 8, t.gpus_per_node = 8;
  const double even = estimate_memory(t).total();
  t.routing = Routing::kSkewed;
  for (const i64 hot : {0, 5, 50}) {
    t.hot_percent = hot;
    EXPECT_GT(estimate_memory(t).total(), even) << hot;
  }
}

// The dry run's peaks (sweep-rank dry-run --backend cuda) of 8 ranks, sequences of 1024.
struct DryRun {
  const char* model;
  i64 layers, tp, ep, zero, micro_batch, grad_accum;
  Recompute recompute;
  double megabytes;
};
TEST(Memory, IsNearTheDryRun) {
  constexpr DryRun kPeaks[] = {{"llama3-8b", 8, 1, 1, 0, 2, 1, Recompute::kFull, 22415},
                               {"llama3-8b", 8, 1, 1, 0, 2, 1, Recompute::kSelective, 22415},
                               {"llama3-8b", 8, 1, 1, 0, 8, 1, Recompute::kNone, 25853},
                               {"llama3-8b", 8, 4, 1, 0, 2, 1, Recompute::kNone, 5659},
                               {"llama3-8b", 8, 1, 1, 1, 2, 2, Recompute::kNone, 14725},
                               {"llama3-8b", 8, 1, 1, 2, 2, 1, Recompute::kNone, 10315},
                               {"llama3-8b", 8, 1, 1, 3, 2, 1, Recompute::kNone, 6779},
                               {"llama3-8b", 8, 1, 1, 3, 2, 1, Recompute::kFull, 5322},
                               {"gpt2-xl", 8, 1, 1, 0, 2, 1, Recompute::kNone, 3033},
                               {"gpt2-xl", 8, 1, 1, 0, 2, 1, Recompute::kFull, 2776},
                               {"mixtral-8x7b", 4, 1, 1, 0, 2, 1, Recompute::kNone, 48856},
                               {"mixtral-8x7b", 4, 1, 8, 0, 2, 1, Recompute::kNone, 9396},
                               {"mixtral-8x7b", 1, 1, 8, 3, 1, 1, Recompute::kNone, 3036},
                               {"mixtral-8x7b", 1, 1, 1, 3, 4, 1, Recompute::kNone, 8775}};
  for (const DryRun& d : kPeaks) {
    Trial t = model_trial(d.model, "h100-sxm-80gb");
    t.spec.layers = d.layers, t.tp = d.tp, t.dp = 8 / d.tp, t.ep = d.ep, t.zero = d.zero, t.seq_len = 1024;
    t.micro_batch_size = d.micro_batch, t.grad_accum = d.grad_accum, t.recompute = d.recompute;
    t.global_batch_size = t.dp * t.micro_batch_size * t.grad_accum;
    const double share = d.zero == 2 ? 0.015 : 0.01;  // ZeRO 2: the formula leaves out a bucket of a table
    EXPECT_NEAR(estimate_memory(t).total() / 1e6, d.megabytes, share * d.megabytes)
        << d.model << " zero " << d.zero;
  }
}

TEST(Roofline, AComputeBoundStepIsNearItsFlops) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb", 1, 1);
  const Prediction p = roofline().predict(t, MeasurePlan{3, 10, 2});
  const double seconds = 4096 * shape::model_flops_per_token(t.spec, 4096) / 989.4e12;
  EXPECT_GT(*p.step_ms, 1.6e3 * seconds);  // 30 to 60 % of the peak
  EXPECT_LT(*p.step_ms, 3.3e3 * seconds);
  EXPECT_NEAR(*p.seconds, 20 + 13 * 2 * *p.step_ms / 1e3, 1e-6);
}

TEST(Roofline, TwoNodesPayForTheNetwork) {
  Trial one = model_trial("llama3-8b", "a100-80gb", 1), two = model_trial("llama3-8b", "a100-80gb", 2);
  const auto a = roofline().predict(one, {}), b = roofline().predict(two, {});
  EXPECT_GT(*b.step_ms, *a.step_ms);  // the same work per rank
}

TEST(Roofline, MicroBatchesThatAreTooSmallCostLaunches) {
  Trial small = model_trial("tiny-llama", "h100-sxm-80gb"), large = small;
  small.seq_len = large.seq_len = 256;
  small.grad_accum = 16, large.micro_batch_size = 16;
  small.global_batch_size = large.global_batch_size = 8 * 16;
  EXPECT_GT(*roofline().predict(small, {}).step_ms, 5 * *roofline().predict(large, {}).step_ms);
}

TEST(Roofline, PipelineBubble) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  t.pp = 8;
  t.dp = 1;
  t.grad_accum = t.global_batch_size = 8;
  Trial fewer = t;
  fewer.grad_accum = fewer.global_batch_size = 1;
  EXPECT_GT(8 * *roofline().predict(fewer, {}).step_ms, 3 * *roofline().predict(t, {}).step_ms);
}

}  // namespace
}  // namespace sweep::predict
