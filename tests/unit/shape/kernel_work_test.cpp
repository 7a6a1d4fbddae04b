// Bytes and launches of a layer's kernels beside products, against counts on phantom GPUs.
#include "bench_kernels/shape/kernel_work.h"

#include <gtest/gtest.h>

#include "tests/support/model_trial.h"

namespace sweep::shape {
namespace {

LayerColumns llama() {
  return {4096, 4096, 4096, 4096, 4096, 1024, 14336, 32, 2};
}

PassWork of_layer(const ModelSpec& m, const KernelChoice& kernels, const LayerColumns& c) {
  PassWork out = layer_work(m, kernels, c, 0);
  return out += attention_work(m, kernels, c);
}

double both(double KernelWork::*what, const PassWork& w) {
  return w.forward.*what + w.backward.*what;
}

TEST(KernelWork, ALlamaLayerIsWhatTheLaunchTableCounts) {
  const PassWork w = of_layer(*find_model("llama3-8b"), {}, llama());
  constexpr double kProducts = 12;
  EXPECT_EQ(both(&KernelWork::launches, w) + kProducts, 28);
  EXPECT_NEAR(both(&KernelWork::bytes, w), 1.81e9, 0.03e9);
}

TEST(KernelWork, AGpt2LayerIsWhatTheLaunchTableCounts) {
  const LayerColumns c{4096, 4096, 1024, 1600, 1600, 1600, 6400, 25, 2};
  constexpr double kProducts = 12;
  EXPECT_EQ(both(&KernelWork::launches, of_layer(*find_model("gpt2-xl"), {}, c)) + kProducts, 29);
}

TEST(KernelWork, EachGroupThatIsNotFusedAddsToAllFused) {
  const ModelSpec m = *find_model("llama3-8b");
  const PassWork fused = of_layer(m, {}, llama());
  double sum = 0;
  for (bool FusedGroups::*group : {&FusedGroups::norm, &FusedGroups::rope, &FusedGroups::mlp}) {
    KernelChoice without;
    without.fused.*group = false;
    const double more =
        both(&KernelWork::bytes, of_layer(m, without, llama())) - both(&KernelWork::bytes, fused);
    EXPECT_GT(more, 1e9);
    sum += more;
  }
  KernelChoice none;
  none.fused = {false, false, false, false, false};
  EXPECT_DOUBLE_EQ(both(&KernelWork::bytes, of_layer(m, none, llama())) - both(&KernelWork::bytes, fused),
                   sum);
  EXPECT_GT(loss_work(none, 4096, 128256, 2).bytes, 3 * loss_work({}, 4096, 128256, 2).bytes);
}

TEST(KernelWork, ScoresInMemoryGrowWithTheSquareOfTheSequence) {
  const ModelSpec m = *find_model("llama3-8b");
  KernelChoice math;
  math.math = true;
  LayerColumns twice = llama();
  twice.tokens = twice.norm_tokens = twice.keys = 8192;
  const double once = attention_work(m, math, llama()).forward.bytes;
  EXPECT_NEAR(attention_work(m, math, twice).forward.bytes / once, 4, 0.15);
  math.autocast = true;
  EXPECT_GT(attention_work(m, math, llama()).forward.bytes, 1.5 * once);
}

TEST(KernelWork, TheTrialAndItsGpuChooseKernels) {
  Trial t = model_trial("llama3-8b", "h100-sxm-80gb");
  EXPECT_TRUE(is_default(kernel_choice(t)));
  for (const Precision other :
       {Precision::kFp32, Precision::kBf16Mixed, Precision::kBf16Amp, Precision::kFp8}) {
    t.precision = other;
    EXPECT_FALSE(is_default(kernel_choice(t))) << to_string(other);
  }
  t.precision = Precision::kFp16, t.hardware = "v100-16gb";
  EXPECT_TRUE(kernel_choice(t).math);
}

}  // namespace
}  // namespace sweep::shape
