// Published cases that say what fits: the profile of the program they used tells the same.
#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/predict.h"

namespace sweep::predict {
namespace {

MemoryPrediction memory_of(const Trial& t, const TrainerProfile& p) {
  TrialPrediction out;
  predict_trial(t, p, *shape::find_hardware(t.hardware), plan::step_refusal, out);
  EXPECT_FALSE(out.refusal);
  return out.memory;
}

bool fits(const Trial& t, const TrainerProfile& p) {
  const auto m = memory_of(t, p);
  return m.need <= m.limit;
}

i64 largest_batch(Trial t, const TrainerProfile& p) {
  for (t.micro_batch_size = 1; fits(t, p); ++t.micro_batch_size) {
  }
  return t.micro_batch_size - 1;
}

Trial of_24_gb(const ModelSpec& spec, i64 ranks, i64 sequence) {
  Trial t;
  t.spec = spec, t.hardware = "a10g-24gb";
  t.dp = t.gpus_per_node = ranks, t.seq_len = sequence;
  return t;
}

// Accelerate with DeepSpeed, BlenderBot of 400 M on two GPUs of 24 GB: batch 100 with DDP in fp32, 200 with
// ZeRO-2 in fp16. A decoder of the same width and parameters stands for its encoder and decoder.
TEST(PublishedCases, ZeroTwoInSixteenBitDoublesTheLargestBatch) {
  ModelSpec blender;
  blender.family = "gpt2", blender.layers = 14, blender.hidden_size = 1280, blender.heads = 32;
  blender.vocab_size = 8008, blender.tie_embeddings = true;
  Trial ddp = of_24_gb(*shape::completed(blender), 2, 192);
  ddp.precision = Precision::kFp32;
  Trial zero = ddp;
  zero.zero = 2, zero.precision = Precision::kFp16;
  for (const TrainerProfile* p : {&*built_in_profile("transformers"), &*built_in_profile("fsdp2")}) {
    const double ratio =
        static_cast<double>(largest_batch(zero, *p)) / static_cast<double>(largest_batch(ddp, *p));
    EXPECT_NEAR(ratio, 2, 0.2) << p->name;
  }
}

// The same, GPT-2 XL on one GPU of 24 GB, 128 tokens: DDP has no memory for batch 1, with the optimizer
// offloaded batch 16 runs.
TEST(PublishedCases, OffloadingTheOptimizerTrainsGpt2XlOn24Gb) {
  Trial t = of_24_gb(*shape::find_model("gpt2-xl"), 1, 128);
  t.precision = Precision::kFp16;
  Trial offloaded = t;
  offloaded.offload = Offload::kOptimizer;
  offloaded.micro_batch_size = offloaded.global_batch_size = 16;
  for (const TrainerProfile* p :
       {&*built_in_profile("transformers"), &*built_in_profile("fsdp2"), &*built_in_profile("sweep")}) {
    EXPECT_FALSE(fits(t, *p)) << p->name;
    EXPECT_TRUE(fits(offloaded, *p)) << p->name;
  }
}

// Lightning's tables of 2022: the star is the largest batch before cudaMalloc retries.
TEST(PublishedCases, LightningsStarIsAtSeven) {
  Trial t;
  t.spec = *shape::find_model("gpt2-xl"), t.spec.tie_embeddings = false;
  t.hardware = "v100-16gb", t.gpus_per_node = t.dp = 4, t.zero = 3, t.precision = Precision::kFp16,
  t.seq_len = 128;
  const auto retries = [&](i64 batch) {
    t.micro_batch_size = batch;
    const auto m = memory_of(t, *built_in_profile("lightning"));
    return m.wanted > m.reserved;  // it would reserve more than the device has
  };
  EXPECT_FALSE(retries(7));
  EXPECT_TRUE(retries(8));
}

}  // namespace
}  // namespace sweep::predict
