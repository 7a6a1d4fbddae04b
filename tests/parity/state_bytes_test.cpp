// Bytes of the model states: the dry run against the CPU run on every rank, what lasts against the formulas
// of bench_kernels/shape, and bytes sent against theirs.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/optimizer_states.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/step/train_step.h"

namespace sweep::step {
namespace {

Trial small_llama(i64 dp) {
  Trial t;
  t.spec.layers = 3, t.spec.hidden_size = 72, t.spec.heads = 6, t.spec.kv_heads = 2, t.spec.head_dim = 12;
  t.spec.intermediate_size = 100, t.spec.vocab_size = 211;
  t.seq_len = 48, t.micro_batch_size = 2, t.grad_accum = 2;
  t.dp = t.gpus_per_node = dp;
  t.global_batch_size = t.dp * t.micro_batch_size * t.grad_accum;
  return t;
}

Trial shares_table(Trial t) {
  t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true;
  return t;
}
Trial norms_heads(Trial t) {
  t.spec.family = "qwen3", t.spec.head_dim = 14;
  return t;
}

struct Case {
  std::string name;
  Trial trial;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

struct Peaks {
  std::vector<i64> device, host;  // after each step
};

Peaks peaks_of(const Trial& t, at::Device device, i64 rank, int steps) {
  memory::install(device.type());
  const auto before = memory::stats(device.type());
  memory::reset_peak(device.type());
  const parallel::Mesh mesh = parallel::pretend(*shape::ParallelDims::make(t), rank);
  TrainStep step(t, device, mesh, nullptr);
  Peaks peaks;
  for (int i = 0; i < steps; ++i) {
    step.run();
    const auto now = memory::stats(device.type());
    peaks.device.push_back(now.peak - before.current);
    peaks.host.push_back(now.host_peak - before.host_current);
  }
  return peaks;
}

// The trial with each offload that it may have.
void add_offloads(std::vector<Case>& all, const std::string& name, Trial t) {
  for (const Offload offload :
       {Offload::kOptimizer, Offload::kDisk, Offload::kParameters, Offload::kDiskParameters}) {
    t.offload = offload;
    if (!shape::states_unsupported(t))
      all.push_back({name + "_offload_" + std::string(to_string(offload)), t});
  }
}

std::vector<Case> adapter_cases() {
  std::vector<Case> all;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16Master, Precision::kBf16Mixed}) {
      Trial t = small_llama(2);
      t.zero = zero, t.precision = precision, t.lora_rank = 5;
      all.push_back({"lora_zero" + std::to_string(zero) + "_" + std::string(to_string(precision)), t});
    }
    Trial t = shares_table(small_llama(2));
    t.zero = zero, t.lora_rank = 8, t.lora_targets = LoraTargets::kAttention, t.grad_dtype = GradDtype::kFp32;
    t.precision = Precision::kBf16, t.grad_clip = true;
    all.push_back({"lora_attention_tied_zero" + std::to_string(zero), t});
    Trial outside = small_llama(2);
    outside.zero = zero, outside.lora_rank = 4;
    add_offloads(all, "lora_zero" + std::to_string(zero), outside);
  }
  return all;
}

std::vector<Case> quantized_cases() {
  std::vector<Case> all;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16Master, Precision::kBf16Mixed}) {
      Trial t = small_llama(2);
      t.spec.hidden_size = 128, t.spec.head_dim = 32, t.spec.intermediate_size = 192;
      t.zero = zero, t.precision = precision, t.lora_rank = 5, t.quantize_base = QuantizeBase::kNf4;
      all.push_back({"nf4_zero" + std::to_string(zero) + "_" + std::string(to_string(precision)), t});
    }
  }
  return all;
}

// Shards over two ranks keep moments of eight bits, some over four in fp32: they are small.
std::vector<Case> eight_bit_cases() {
  std::vector<Case> all;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const i64 dp : {1, 4}) {
      for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master}) {
        Trial t = small_llama(dp);
        t.optimizer = OptimizerKind::kAdamw8bit, t.zero = zero, t.precision = precision;
        if (dp == 1) t.spec.intermediate_size = 101;  // blocks that are not full
        all.push_back({"eight_bit_zero" + std::to_string(zero) + "_dp" + std::to_string(dp) + "_" +
                           std::string(to_string(precision)),
                       t});
      }
    }
    Trial outside = small_llama(2);
    outside.optimizer = OptimizerKind::kAdamw8bit, outside.zero = zero;
    outside.precision = zero % 2 == 0 ? Precision::kBf16Master : Precision::kFp32;
    add_offloads(all, "eight_bit_zero" + std::to_string(zero), outside);
  }
  return all;
}

std::vector<Case> paged_cases() {
  std::vector<Case> all;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16Master}) {
      Trial t = small_llama(2);
      t.optimizer = OptimizerKind::kPagedAdamw, t.zero = zero, t.precision = precision;
      all.push_back({"paged_zero" + std::to_string(zero) + "_" + std::string(to_string(precision)), t});
    }
  }
  return all;
}

std::vector<Case> adafactor_cases() {
  std::vector<Case> all;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kBf16Master}) {
    for (const Offload offload : {Offload::kNone, Offload::kOptimizer, Offload::kParameters}) {
      Trial t = small_llama(2);
      t.optimizer = OptimizerKind::kAdafactor, t.precision = precision, t.offload = offload;
      all.push_back(
          {"adafactor_" + std::string(to_string(precision)) + "_offload_" + std::string(to_string(offload)),
           t});
    }
  }
  Trial tied = shares_table(small_llama(1));
  tied.optimizer = OptimizerKind::kAdafactor;
  all.push_back({"adafactor_tied", tied});
  Trial joined = small_llama(1);  // query, key and value in one matrix, biases, learned positions
  joined.optimizer = OptimizerKind::kAdafactor;
  joined.spec.family = "gpt2", joined.spec.rmsnorm = joined.spec.swiglu = joined.spec.rope = false;
  joined.spec.kv_heads = joined.spec.heads, joined.spec.max_positions = 64;
  joined.spec.attention_bias = joined.spec.linear_bias = joined.spec.tie_embeddings = true;
  all.push_back({"adafactor_gpt2", joined});
  return all;
}

std::vector<Case> head_norm_cases() {
  std::vector<Case> all;
  for (const i64 zero : {0, 2, 3}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16Mixed}) {
      Trial t = norms_heads(small_llama(2));
      t.zero = zero, t.precision = precision;
      all.push_back({"qwen3_zero" + std::to_string(zero) + "_" + std::string(to_string(precision)), t});
    }
  }
  Trial t = norms_heads(small_llama(1));
  t.optimizer = OptimizerKind::kAdafactor;
  all.push_back({"qwen3_adafactor", t});
  t.spec.family = "gemma3_text", t.spec.sliding_window = 16, t.spec.sliding_window_pattern = 2;
  t.spec.rope_local_theta = 100, t.spec.tie_embeddings = true;
  all.push_back({"gemma3_adafactor", t});
  t.dp = t.gpus_per_node = 2, t.global_batch_size *= 2, t.optimizer = OptimizerKind::kFused, t.zero = 3;
  all.push_back({"gemma3_zero3", t});
  Trial sinks = small_llama(2);
  sinks.spec.family = "gpt_oss", sinks.spec.experts = 4, sinks.spec.experts_per_token = 2;
  sinks.spec.attention_bias = sinks.spec.linear_bias = true;
  sinks.spec.sliding_window = 16, sinks.spec.sliding_window_pattern = 2;
  for (const i64 zero : {0, 1, 3}) {
    sinks.zero = zero, sinks.precision = zero == 1 ? Precision::kBf16Mixed : Precision::kFp32;
    all.push_back({"gpt_oss_zero" + std::to_string(zero), sinks});
    if (zero == 0) continue;
    Trial hybrid = sinks;
    hybrid.dp = hybrid.gpus_per_node = 4, hybrid.global_batch_size *= 2, hybrid.dp_shard = 2;
    all.push_back({"gpt_oss_hybrid_zero" + std::to_string(zero), hybrid});
  }
  sinks.zero = 0, sinks.precision = Precision::kBf16Master, sinks.optimizer = OptimizerKind::kAdafactor;
  all.push_back({"gpt_oss_adafactor", sinks});
  return all;
}

// A layer without experts, then two with.
std::vector<Case> latent_cases() {
  std::vector<Case> all;
  for (const i64 zero : {0, 1, 2, 3}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16Mixed, Precision::kBf16Master}) {
      Trial t = small_llama(2);
      t.spec.family = zero % 2 == 0 ? "deepseek_v2" : "deepseek_v3";
      t.spec.kv_heads = 6, t.spec.rope_head_dim = 4, t.spec.v_head_dim = 10, t.spec.kv_lora_rank = 22;
      t.spec.q_lora_rank = zero % 2 == 0 ? 0 : 34, t.spec.experts = 3, t.spec.experts_per_token = 2;
      t.spec.shared_experts = 1, t.spec.dense_layers = 1, t.spec.dense_intermediate_size = 120;
      t.zero = zero, t.precision = precision;
      if (zero < 2 && precision == Precision::kBf16Master)
        t.optimizer = OptimizerKind::kAdafactor, t.zero = 0;
      all.push_back({"latent_zero" + std::to_string(zero) + "_" + std::string(to_string(precision)), t});
    }
  }
  return all;
}

std::vector<Case> gathering_cases() {
  std::vector<Case> all;
  for (const bool reshard : {true, false}) {
    for (const i64 prefetch : {0, 3}) {
      Trial t = small_llama(2);
      t.zero = 3, t.reshard_after_forward = reshard, t.prefetch_forward = t.prefetch_backward = prefetch;
      all.push_back(
          {std::string(reshard ? "zero3_resharded" : "zero3_kept") + "_prefetch" + std::to_string(prefetch),
           t});
      if (prefetch == 0) continue;
      t.backward_prefetch = BackwardPrefetch::kPost;
      all.push_back({std::string(reshard ? "zero3_resharded" : "zero3_kept") + "_post", t});
    }
  }
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> all = adapter_cases();
  for (const auto& more : {quantized_cases(), eight_bit_cases(), paged_cases(), adafactor_cases(),
                           head_norm_cases(), latent_cases(), gathering_cases()})
    all.insert(all.end(), more.begin(), more.end());
  for (const i64 zero : {0, 1, 2, 3}) {
    const std::string stage = "zero" + std::to_string(zero);
    for (const Precision precision :
         {Precision::kFp32, Precision::kBf16, Precision::kBf16Master, Precision::kBf16Mixed, Precision::kFp16,
          Precision::kBf16Amp, Precision::kFp16Amp}) {
      for (const GradDtype grad_dtype : {GradDtype::kAuto, GradDtype::kFp32}) {
        Trial t = small_llama(4);
        t.zero = zero, t.precision = precision, t.grad_dtype = grad_dtype;
        all.push_back(
            {stage + "_" + std::string(to_string(precision)) + "_" + std::string(to_string(grad_dtype)), t});
      }
    }
    for (const Offload offload :
         {Offload::kOptimizer, Offload::kDisk, Offload::kParameters, Offload::kDiskParameters}) {
      Trial t = small_llama(2);
      t.zero = zero, t.offload = offload;
      if (shape::states_unsupported(t)) continue;
      all.push_back({stage + "_offload_" + std::string(to_string(offload)), t});
      t.precision = Precision::kBf16Master;
      all.push_back({stage + "_offload_" + std::string(to_string(offload)) + "_bf16_master", t});
    }
    if (zero == 0) continue;
    Trial hybrid = small_llama(4);
    hybrid.zero = zero, hybrid.dp_shard = 2, hybrid.grad_clip = true;
    all.push_back({stage + "_hybrid_clipped", hybrid});
    Trial plain = small_llama(2);
    plain.zero = zero, plain.optimizer = OptimizerKind::kPlain, plain.precision = Precision::kBf16Master;
    all.push_back({stage + "_plain", plain});
    for (const OptimizerKind sgd : {OptimizerKind::kSgd, OptimizerKind::kSgdMomentum}) {
      Trial t = small_llama(2);
      t.zero = zero, t.optimizer = sgd;
      all.push_back({stage + "_" + std::string(to_string(sgd)), t});
      t.precision = Precision::kBf16Master, t.offload = Offload::kDisk;
      all.push_back({stage + "_" + std::string(to_string(sgd)) + "_on_disk_bf16_master", t});
    }
    Trial tied = shares_table(small_llama(2));
    tied.zero = zero;
    all.push_back({stage + "_tied", tied});
  }
  return all;
}

class StateBytes : public ::testing::TestWithParam<Case> {};

TEST_P(StateBytes, DryRunEqualsTheCpuRunOnEveryRank) {
  const Trial& t = GetParam().trial;
  for (i64 rank = 0; rank < t.world(); ++rank) {
    const Peaks real = peaks_of(t, at::kCPU, rank, 2), dry = peaks_of(t, at::kMeta, rank, 2);
    EXPECT_EQ(dry.device[1], real.device[1]) << "rank " << rank;
    EXPECT_EQ(real.device[0], real.device[1]) << "the peak is there in the first step";
    EXPECT_EQ(dry.host[1], real.host[1]) << "rank " << rank;
    EXPECT_EQ(real.host[1] > 0, t.offload != Offload::kNone || t.optimizer == OptimizerKind::kPagedAdamw);
  }
}

TEST(BackwardPrefetch, PostHoldsOneBlockLess) {
  const auto peak = [](BackwardPrefetch when, i64 ahead) {
    Trial t = small_llama(2);
    t.zero = 3, t.backward_prefetch = when, t.prefetch_backward = ahead;
    return peaks_of(t, at::kMeta, 0, 1).device[0];
  };
  for (const i64 ahead : {1, 2})
    EXPECT_EQ(peak(BackwardPrefetch::kPost, ahead), peak(BackwardPrefetch::kPre, ahead - 1)) << ahead;
  EXPECT_LT(peak(BackwardPrefetch::kPost, 1), peak(BackwardPrefetch::kPre, 1));
}

TEST_P(StateBytes, WhatLastsIsTheFormulaPlusPadding) {
  const Trial& t = GetParam().trial;
  const parallel::Mesh mesh = parallel::pretend(*shape::ParallelDims::make(t), 0);
  TrainStep step(t, at::kMeta, mesh, nullptr);
  const parallel::ModelState& state = step.state();
  EXPECT_EQ(state.bytes().gradients, 0) << "no backward has made them";
  step.run();
  EXPECT_EQ(state.elements() - state.padding(),
            shape::parameter_count(t.spec) + shape::adapter_parameter_count(t) - shape::quantized_weights(t));
  const shape::StateBytes formula = shape::state_bytes(t);
  const auto elements = static_cast<double>(state.elements());
  const auto trained = static_cast<double>(state.count(false).all);
  EXPECT_EQ(state.count(true).all > 0, t.lora_rank > 0);
  const auto codes = static_cast<double>(state.count(true).quantized);
  EXPECT_EQ(codes > 0, t.quantize_base != QuantizeBase::kNone);
  EXPECT_EQ(static_cast<double>(state.bytes().weights),
            formula.weights * elements + codes / static_cast<double>(shape::state_split(t).weights));
  EXPECT_EQ(static_cast<double>(state.bytes().gradients), formula.gradients * trained);
  i64 optimizer = 0;
  for (const i64 elements : state.updated()) optimizer += shape::optimizer_bytes(t, elements);
  optimizer += shape::factored_bytes(t, state.factored());
  EXPECT_EQ(state.bytes().optimizer, optimizer);
  if (t.lora_rank == 0) {
    EXPECT_EQ(static_cast<double>(state.factored()),
              shape::factored_numbers(t, shape::split_stages(t.spec, 1, t.seq_len).front()));
  }
  // 8-bit AdamW and Adafactor keep states by block, row and column: no number per parameter gives their bytes.
  if (t.optimizer != OptimizerKind::kAdamw8bit && t.optimizer != OptimizerKind::kAdafactor) {
    EXPECT_EQ(static_cast<double>(state.bytes().optimizer), formula.optimizer * trained);
  }
}

// Until the next step begins, which frees them before its forward.
i64 blocks_of_gradients(const parallel::ModelState& state) {
  i64 sum = 0;
  for (const at::Tensor& g : state.gradients()) sum += (static_cast<i64>(g.nbytes()) + 511) / 512 * 512;
  return sum;
}

TEST_P(StateBytes, NothingElseLasts) {
  Trial t = GetParam().trial;
  if (t.spec.experts > 0) t.routing = Routing::kLearned;  // the routes that positions decide last
  memory::install(c10::DeviceType::Meta);
  const auto allocated = [] { return memory::stats(c10::DeviceType::Meta).current; };
  const i64 before = allocated();
  const parallel::Mesh mesh = parallel::pretend(*shape::ParallelDims::make(t), 0);
  TrainStep step(t, at::kMeta, mesh, nullptr);
  const i64 built = allocated() - before;
  for (int i = 0; i < 2; ++i) {
    step.run();
    EXPECT_GT(blocks_of_gradients(step.state()), 0);
    EXPECT_EQ(allocated() - before, built + blocks_of_gradients(step.state()));
  }
  const auto bytes = step.state().bytes();
  // Beside the states: tokens and labels, rotary tables, the loss, step counts; blocks are rounded to 512.
  const i64 batch = t.grad_accum * 2 * t.micro_batch_size * t.seq_len * 8;
  const i64 tables = !t.spec.rope ? 0 : 2 * t.seq_len * (t.spec.head_dim / 2) * 4;
  const i64 rest = built - bytes.weights - bytes.optimizer - batch - tables;
  EXPECT_GE(rest, 0);
  EXPECT_LE(rest, 512 * 64);
}

TEST_P(StateBytes, SentBytesAreTheFormula) {
  const Trial& t = GetParam().trial;
  parallel::Mesh mesh = parallel::pretend(*shape::ParallelDims::make(t), 0);
  TrainStep step(t, at::kMeta, mesh, nullptr);
  step.run();
  mesh.reset_traffic();
  step.run();
  const parallel::ModelState& state = step.state();
  const auto trained = state.count(false), frozen = state.count(true);
  const auto exact = [](i64 n) { return static_cast<double>(n); };
  shape::StateTraffic formula = shape::state_traffic(t, exact(trained.all), exact(trained.shared));
  formula.all_gather += shape::frozen_traffic(t, exact(frozen.all), exact(frozen.shared)).all_gather +
                        shape::quantized_traffic(t, exact(frozen.quantized), 0).all_gather;
  const comm::Traffic sent = mesh.traffic();
  const bool agrees = t.grad_clip || shape::scales_loss(t);  // one float64 over the world
  const i64 agreement = agrees ? 2 * 8 * (t.world() - 1) / t.world() : 0;
  const auto bytes = [&](comm::Kind kind) { return static_cast<double>(sent.bytes_of(kind)); };
  EXPECT_EQ(bytes(comm::Kind::kAllReduce), formula.all_reduce + static_cast<double>(agreement));
  EXPECT_EQ(bytes(comm::Kind::kReduceScatter), formula.reduce_scatter);
  EXPECT_EQ(bytes(comm::Kind::kAllGather), formula.all_gather);
}

INSTANTIATE_TEST_SUITE_P(Cases, StateBytes, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sweep::step
