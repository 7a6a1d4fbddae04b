// Predictions as experts are spread, states are sharded and activations are made anew: none goes the wrong way.
#include <gtest/gtest.h>

#include "orchestrator/predict/step_cost.h"
#include "tests/unit/predict/predict_fixture.h"

namespace sweep::predict {
namespace {

TEST(Experts, AreDividedOnceOverTheRanksThatShardThem) {
  for (const char* profile : {"fsdp2", "torchtitan"}) {
    Trial whole = laid_out("mixtral-8x7b", 1, 8, 1, 1, 1, 1, 3), spread = whole;
    whole.precision = spread.precision = Precision::kBf16Mixed;
    spread.ep = 8;
    const auto &a = predicted(whole, built_in(profile)).memory.parts,
               b = predicted(spread, built_in(profile)).memory.parts;
    EXPECT_NEAR(b.weights / a.weights, 1, 0.01)
        << profile << ": each of 8 ranks keeps an eighth of all weights";
    EXPECT_NEAR(b.optimizer / a.optimizer, 1, 0.01) << profile;
  }
  Trial whole = laid_out("mixtral-8x7b", 1, 8, 1, 1, 1, 1, 1), spread = whole;
  spread.ep = 8;
  const auto &a = predicted(whole, built_in("deepspeed")).memory.parts,
             b = predicted(spread, built_in("deepspeed")).memory.parts;
  EXPECT_LT(b.weights, a.weights / 4) << "ZeRO 1 keeps the weights of its own experts";
  EXPECT_NEAR(b.optimizer / a.optimizer, 1, 0.01);
}

TEST(SelectiveRecomputation, KeepsNoMoreThanNone) {
  for (const char* profile : {"megatron", "fsdp2", "nanotron", "deepspeed", "transformers"})
    for (const char* model : {"llama3-8b", "gpt2-xl"})
      for (const i64 batch : {1, 4}) {
        Trial none = laid_out(model, 1, 8, 1, 1, 1, batch, 1), selective = none;
        selective.recompute = Recompute::kSelective;
        EXPECT_LE(predicted(selective, built_in(profile)).memory.need,
                  predicted(none, built_in(profile)).memory.need)
            << profile << ' ' << model << ' ' << batch;
      }
}

TEST(ShardedGradients, AreWholeUnderAPipelineWhateverIsResharded) {
  const Trial two = laid_out("llama3-8b", 1, 4, 1, 2, 8, 1, 2),
              three = laid_out("llama3-8b", 1, 4, 1, 2, 8, 1, 3);
  for (const char* profile : {"fsdp2", "torchtitan"})
    EXPECT_DOUBLE_EQ(predicted(two, built_in(profile)).memory.parts.gradients,
                     predicted(three, built_in(profile)).memory.parts.gradients)
        << profile;
}

TEST(StepCost, RanksExchangeAndUpdateTheirOwnExperts) {
  Trial whole = laid_out("mixtral-8x7b", 1, 8, 1, 1, 1, 1, 0), spread = whole;
  spread.ep = 8;
  const auto hardware = *shape::find_hardware("h100-sxm-80gb");
  const auto of = [&](const Trial& t) { return step_cost(t, catalogue_profile(hardware), hardware); };
  EXPECT_LT(of(spread).optimizer_s, of(whole).optimizer_s / 4);
  EXPECT_LT(of(spread).data_parallel_s, of(whole).data_parallel_s);
}

// Casts read and write the weights that a rank keeps: under ZeRO-3 an eighth of all, whoever has the experts.
TEST(StepCost, ZeroThreeCastsAsManyWeightsHoweverExpertsAreSpread) {
  const auto hardware = *shape::find_hardware("h100-sxm-80gb");
  const auto casts = [&](i64 ep, i64 zero) {
    Trial t = laid_out("mixtral-8x7b", 1, 8, 1, 1, 1, 4, zero);
    t.ep = ep;
    const auto seconds = [&](bool kept_wide) {
      shape::KernelChoice kernels = shape::kernel_choice(t);
      kernels.casts = kept_wide;
      return step_cost(t, catalogue_profile(hardware), hardware, kernels).compute_s;
    };
    return seconds(true) - seconds(false);
  };
  EXPECT_NEAR(casts(8, 3), casts(1, 3), 1e-3 * casts(1, 3));
  EXPECT_GT(casts(1, 0), 4 * casts(8, 0))
      << "without ZeRO-3 a rank has an eighth of the experts, and all else";
}

TEST(StepCost, AnUpdateReadsTheGradientsOfItsShare) {
  Trial t = laid_out("llama3-8b", 1, 8, 1, 1, 1, 1, 1);
  t.offload = Offload::kOptimizer;
  const auto hardware = *shape::find_hardware("h100-sxm-80gb");
  const double one = step_cost(t, catalogue_profile(hardware), hardware).offload_s;
  t.zero = 2;
  EXPECT_DOUBLE_EQ(step_cost(t, catalogue_profile(hardware), hardware).offload_s, one);
}

}  // namespace
}  // namespace sweep::predict
