// The dry run on meta tensors against the run on CPU: peak bytes equal to the byte, for every shape and
// option of one rank.
#include "bench_kernels/step/dry_run.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/step/train_step.h"

namespace sweep::step {
namespace {

Trial llama() {
  Trial t;
  t.spec.layers = 3, t.spec.hidden_size = 72, t.spec.heads = 6, t.spec.kv_heads = 2, t.spec.head_dim = 12;
  t.spec.intermediate_size = 100, t.spec.vocab_size = 211;
  t.seq_len = 48, t.micro_batch_size = 2, t.global_batch_size = 2;
  return t;
}
Trial gpt2() {
  Trial t = llama();
  t.spec.family = "gpt2", t.spec.kv_heads = 6, t.spec.max_positions = 64, t.spec.tie_embeddings = true;
  t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  return t;
}

i64 dry(const Trial& t, Backend backend = Backend::kCpu) {
  const auto line = dry_run_line(t, backend);
  EXPECT_TRUE(line) << (line ? "" : line.error().message);
  return line ? nlohmann::json::parse(*line)["peak_bytes"][0].get<i64>() : -1;
}

std::vector<i64> real(const Trial& t, int steps, i64 rank = 0) {
  memory::install(c10::DeviceType::CPU);
  const i64 before = memory::stats(c10::DeviceType::CPU).current;
  memory::reset_peak(c10::DeviceType::CPU);
  const parallel::Mesh mesh = parallel::pretend(*shape::ParallelDims::make(t), rank);
  TrainStep step(t, at::kCPU, mesh, nullptr);
  std::vector<i64> peaks;
  for (int i = 0; i < steps; ++i) {
    step.run();
    peaks.push_back(memory::stats(c10::DeviceType::CPU).peak - before);
  }
  return peaks;
}

void expect_equal(const Trial& t, const std::string& what) {
  const auto peaks = real(t, 2);
  EXPECT_EQ(dry(t), peaks[0]) << what;
  EXPECT_EQ(peaks[0], peaks[1]) << what << ": the peak is there in the first step";
}

TEST(DryRun, EqualsTheCpuRunForEveryAttentionOptimizerPrecisionAndAccumulation) {
  for (const Trial& model : {llama(), gpt2()}) {
    for (const AttentionKind attention : {AttentionKind::kMath, AttentionKind::kFlash}) {
      for (const OptimizerKind optimizer :
           {OptimizerKind::kPlain, OptimizerKind::kForeach, OptimizerKind::kFused, OptimizerKind::kSgd,
            OptimizerKind::kSgdMomentum}) {
        for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
          for (const i64 accumulation : {1, 3}) {
            Trial t = model;
            t.attention = attention, t.optimizer = optimizer, t.precision = precision,
            t.grad_accum = accumulation;
            expect_equal(t, t.spec.family + " " + std::string(to_string(attention)) + " " +
                                std::string(to_string(optimizer)) + " " + std::string(to_string(precision)) +
                                " " + std::to_string(accumulation));
          }
        }
      }
    }
  }
}

TEST(DryRun, EqualsTheCpuRunUnderAutocast) {
  Trial gemma = llama();
  gemma.spec.family = "gemma", gemma.spec.tie_embeddings = true;
  for (const Trial& model : {llama(), gpt2(), gemma}) {
    for (const Precision precision : {Precision::kBf16Amp, Precision::kFp16Amp}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        for (const AttentionKind attention : {AttentionKind::kMath, AttentionKind::kFlash}) {
          Trial t = model;
          t.precision = precision, t.recompute = recompute, t.attention = attention, t.grad_accum = 2;
          const std::string what = t.spec.family + " " + std::string(to_string(precision)) + " " +
                                   std::string(to_string(recompute)) + " " +
                                   std::string(to_string(attention));
          expect_equal(t, what);
          t.fused_kernels = FusedKernels::kNone, t.activation_offload = true;
          expect_equal(t, what + ", no fused kernels, offloaded activations");
        }
      }
    }
  }
}

TEST(DryRun, EqualsTheCpuRunForEveryChoiceOfFusedKernels) {
  for (const FusedKernels choice : {FusedKernels::kNone, FusedKernels::kNoNorm, FusedKernels::kNoRope,
                                    FusedKernels::kNoMlp, FusedKernels::kNoLoss}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      for (Trial t : {llama(), gpt2()}) {
        t.fused_kernels = choice, t.precision = precision;
        expect_equal(t, t.spec.family + " " + std::string(to_string(choice)) + " " +
                            std::string(to_string(precision)));
      }
    }
  }
}

TEST(DryRun, EqualsTheCpuRunForOtherShapes) {
  Trial window = llama();
  window.spec.family = "mistral", window.spec.sliding_window = 16;
  expect_equal(window, "sliding window");
  window.attention = AttentionKind::kMath;
  expect_equal(window, "sliding window, math");
  Trial tied = llama();
  tied.spec.family = "qwen2", tied.spec.attention_bias = tied.spec.tie_embeddings = true,
  tied.spec.kv_heads = 6;
  expect_equal(tied, "tied, biases, as many key heads");
  Trial heads = llama();
  heads.spec.family = "qwen3", heads.spec.head_dim = 24;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      heads.precision = precision, heads.recompute = recompute;
      heads.fused_kernels = recompute == Recompute::kFull ? FusedKernels::kNoNorm : FusedKernels::kAll;
      expect_equal(heads, "norms of heads " + std::string(to_string(precision)) + " " +
                              std::string(to_string(recompute)));
    }
  heads.recompute = Recompute::kNone, heads.lora_rank = 6, heads.lora_targets = LoraTargets::kAttention;
  expect_equal(heads, "norms of heads, adapters");
  Trial latent = llama();
  latent.spec.family = "deepseek_v2", latent.spec.kv_heads = 6, latent.spec.rope_head_dim = 4,
  latent.spec.v_head_dim = 6, latent.spec.kv_lora_rank = 20, latent.spec.experts = 4,
  latent.spec.experts_per_token = 2, latent.spec.shared_experts = 1, latent.spec.dense_layers = 1,
  latent.spec.dense_intermediate_size = 120;
  for (const i64 query_latent : {0, 28})
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        latent.spec.family = query_latent > 0 ? "deepseek_v3" : "deepseek_v2";
        latent.spec.q_lora_rank = query_latent, latent.precision = precision, latent.recompute = recompute;
        latent.fused_kernels = recompute == Recompute::kFull ? FusedKernels::kNoNorm : FusedKernels::kAll;
        expect_equal(latent, latent.spec.family + " " + std::string(to_string(precision)) + " " +
                                 std::string(to_string(recompute)));
      }
  Trial long_one = llama();
  long_one.seq_len = 640, long_one.micro_batch_size = 1, long_one.spec.vocab_size = 1000;
  expect_equal(long_one, "long sequence");
  for (Trial padded : {llama(), gpt2()}) {
    padded.vocab_multiple = 128;
    expect_equal(padded, "padded vocabulary");
    padded.precision = Precision::kBf16, padded.tp = 2, padded.gpus_per_node = 2;
    expect_equal(padded, "padded vocabulary, bf16, tp 2");
  }
}

Trial encoder_decoder() {
  Trial t = gpt2();
  t.spec.family = "blenderbot", t.spec.encoder_layers = 2, t.encoder_seq_len = 60;
  return t;
}

TEST(DryRun, EqualsTheCpuRunForEncoderDecoders) {
  for (const AttentionKind attention : {AttentionKind::kMath, AttentionKind::kFlash})
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
        for (const i64 source : {0, 20, 60}) {
          Trial t = encoder_decoder();
          t.attention = attention, t.precision = precision, t.recompute = recompute, t.grad_accum = 2;
          t.encoder_seq_len = source,
          t.fused_kernels = source == 20 ? FusedKernels::kNoMlp : FusedKernels::kAll;
          expect_equal(t, std::string(to_string(attention)) + " " + std::string(to_string(precision)) + " " +
                              std::string(to_string(recompute)) + " " + std::to_string(source));
        }
}

TEST(DryRun, EqualsTheCpuRunForRelativePositions) {
  for (const bool tied : {false, true})
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        Trial t = encoder_decoder();
        t.spec.family = "t5", t.spec.max_positions = 0, t.spec.tie_embeddings = tied;
        t.attention = AttentionKind::kMath, t.precision = precision, t.recompute = recompute;
        t.fused_kernels = tied ? FusedKernels::kNoMlp : FusedKernels::kAll, t.grad_accum = 2;
        const std::string name = std::string("t5 ") + (tied ? "tied " : "") +
                                 std::string(to_string(precision)) + " " + std::string(to_string(recompute));
        expect_equal(t, name);
        t.spec.family = "t5_v1_0", t.spec.swiglu = false;
        expect_equal(t, name + " with ReLU");
      }
}

TEST(DryRun, EqualsTheCpuRunForEncoderDecodersByLibraryOperators) {
  for (const FusedKernels choice : {FusedKernels::kNone, FusedKernels::kNoNorm, FusedKernels::kNoLoss})
    for (const Precision precision : {Precision::kFp32, Precision::kBf16})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        Trial t = encoder_decoder();
        t.fused_kernels = choice, t.precision = precision, t.recompute = recompute;
        expect_equal(t, std::string(to_string(choice)) + " " + std::string(to_string(precision)) + " " +
                            std::string(to_string(recompute)));
      }
}

TEST(DryRun, EqualsTheCpuRunForWindowsByLayer) {
  Trial windows = llama();
  windows.spec.family = "gemma3_text", windows.spec.sliding_window = 16,
  windows.spec.sliding_window_pattern = 2;
  windows.spec.rope_local_theta = 100, windows.spec.tie_embeddings = true;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      windows.precision = precision, windows.recompute = recompute;
      windows.attention = recompute == Recompute::kFull ? AttentionKind::kMath : AttentionKind::kFlash;
      windows.packing = recompute == Recompute::kNone,
      windows.lengths = windows.packing ? "lognormal 10 0.7" : "";
      expect_equal(windows, "windows by layer " + std::string(to_string(precision)) + " " +
                                std::string(to_string(recompute)));
    }
  windows.recompute = Recompute::kNone, windows.lora_rank = 6;
  expect_equal(windows, "windows by layer, adapters");
}

TEST(DryRun, EqualsTheCpuRunForSinks) {
  Trial sinks = llama();
  sinks.spec.family = "gpt_oss", sinks.spec.experts = 4, sinks.spec.experts_per_token = 2;
  sinks.spec.attention_bias = sinks.spec.linear_bias = true;
  sinks.spec.sliding_window = 16, sinks.spec.sliding_window_pattern = 2;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      sinks.precision = precision, sinks.recompute = recompute;
      sinks.fused_kernels = recompute == Recompute::kFull ? FusedKernels::kNoMlp : FusedKernels::kAll;
      sinks.packing = recompute == Recompute::kNone, sinks.lengths = sinks.packing ? "lognormal 10 0.7" : "";
      expect_equal(sinks,
                   "sinks " + std::string(to_string(precision)) + " " + std::string(to_string(recompute)));
    }
}

// The first expert is the hot one. Chosen by few tokens or none, it leaves most rows to the other ranks.
TEST(DryRun, EqualsTheCpuRunOfTheRankWithTheFullestExperts) {
  Trial t = llama();
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 1;
  t.dp = t.ep = t.gpus_per_node = 4, t.global_batch_size = t.dp * t.micro_batch_size;
  t.routing = Routing::kSkewed;
  for (const i64 hot : {0, 10, 60}) {
    t.hot_percent = hot;
    std::vector<i64> peaks;
    for (i64 rank = 0; rank < t.world(); ++rank) peaks.push_back(real(t, 1, rank)[0]);
    EXPECT_EQ(dry(t), *std::max_element(peaks.begin(), peaks.end())) << hot;
    EXPECT_EQ(peaks[0] == dry(t), hot == 60) << hot;
  }
}

TEST(DryRun, EqualsTheCpuRunForAdapters) {
  for (const Trial& model : {llama(), gpt2()}) {
    for (const LoraTargets targets : {LoraTargets::kAttention, LoraTargets::kMlp, LoraTargets::kAllLinear}) {
      for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master}) {
        Trial t = model;
        t.lora_rank = 6, t.lora_targets = targets, t.precision = precision, t.grad_accum = 2;
        expect_equal(t, t.spec.family + " " + std::string(to_string(targets)) + " " +
                            std::string(to_string(precision)));
        Trial all = t;
        all.lora_rank = 0;
        EXPECT_LT(dry(t), dry(all)) << "no gradients and no optimizer state of the base";
      }
    }
  }
}

TEST(DryRun, EqualsTheCpuRunForPackedAndPaddedDocuments) {
  for (const Trial& model : {llama(), gpt2()}) {
    for (const AttentionKind attention : {AttentionKind::kMath, AttentionKind::kFlash}) {
      for (const bool packing : {true, false}) {
        for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
          Trial t = model;
          t.attention = attention, t.packing = packing, t.recompute = recompute, t.grad_accum = 3;
          t.lengths = "lognormal 10 0.7";
          expect_equal(t, t.spec.family + " " + std::string(to_string(attention)) + " " +
                              std::string(to_string(recompute)) + (packing ? " packed" : " padded"));
        }
      }
    }
  }
}

TEST(DryRun, EqualsTheCpuRunWithGradientBuckets) {
  Trial t = llama();
  t.dp = 4, t.gpus_per_node = 4, t.grad_accum = 2;
  expect_equal(t, "buckets");
  Trial alone = t;
  alone.dp = alone.gpus_per_node = 1;
  EXPECT_LE(std::abs(dry(t) - dry(alone)), 64 << 10) << "buckets are the gradients, not a second copy";
}

TEST(DryRun, MoreThreadsNeedNoMoreMemory) {
  const Trial t = llama();
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const auto peaks = real(t, 2);
  at::set_num_threads(before);
  EXPECT_EQ(dry(t), peaks[1]);
}

TEST(DryRun, CapAtThePeakFitsAndAByteBlockLessDoesNot) {
  const Trial t = llama();
  memory::install(c10::DeviceType::CPU);
  const i64 peak = dry(t), before = memory::stats(c10::DeviceType::CPU).current;
  memory::set_cap(c10::DeviceType::CPU, before + peak);
  const parallel::Mesh mesh = parallel::alone();
  EXPECT_NO_THROW(TrainStep(t, at::kCPU, mesh, nullptr).run());
  memory::set_cap(c10::DeviceType::CPU, before + peak - 512);
  EXPECT_THROW(TrainStep(t, at::kCPU, mesh, nullptr).run(), c10::OutOfMemoryError);
  memory::set_cap(c10::DeviceType::CPU, std::nullopt);
  EXPECT_EQ(memory::stats(c10::DeviceType::CPU).current, before) << "everything is freed on the way out";
}

TEST(DryRun, OnBehalfOfCudaRunsThePlainCompositions) {
  for (Trial t : {llama(), gpt2()}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      t.precision = precision;
      EXPECT_GE(dry(t, Backend::kCuda), dry(t)) << "compositions hold temporaries that fused loops do not";
    }
  }
}

// 32 MiB on Hopper and Blackwell data-centre GPUs, 8.125 MiB on others: as seen in the allocator's
// statistics.
TEST(DryRun, OnBehalfOfCudaCountsTheWorkspaceOfCublas) {
  Trial t = llama();
  t.precision = Precision::kBf16;
  const auto on = [&](const char* hardware) {
    t.hardware = hardware;
    return dry(t, Backend::kCuda);
  };
  const i64 h100 = on("h100-sxm-80gb");
  EXPECT_EQ(on("b200-180gb"), h100);
  EXPECT_EQ(h100 - on("a100-80gb"), (32 << 20) - (8192 << 10) - (128 << 10));
  EXPECT_EQ(on("l4-24gb"), on("a100-80gb"));
  EXPECT_GT(h100, 32 << 20);
}

TEST(DryRun, RefusesWhatTheStepDoesNotRun) {
  Trial t = llama();
  t.packing = true;  // without lengths
  const auto line = dry_run_line(t, Backend::kCpu);
  ASSERT_FALSE(line);
  EXPECT_NE(line.error().message.find("give lengths"), std::string::npos);
}

}  // namespace
}  // namespace sweep::step
