// Each name, unit and value as the source of the trainer has it (each recipe names its source).
#include "orchestrator/interop/trainer_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::interop {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Trial llama_8b() {
  Trial t;
  t.model = "llama3-8b";
  t.spec = shape::find_model(t.model).value();
  return t;
}

Trial layout() {
  Trial t = llama_8b();
  t.nodes = 2, t.gpus_per_node = 8, t.dp = 16, t.precision = Precision::kBf16Master;
  t.micro_batch_size = 2, t.grad_accum = 4, t.global_batch_size = 128, t.seq_len = 4096;
  return t;
}

TEST(TrainerConfig, TorchtitanShardsByFsdp2) {
  Trial t = layout();
  t.zero = 3, t.dp_shard = 8, t.reshard_after_forward = false, t.grad_clip = true;
  const auto form = trainer_config(t, "torchtitan");
  EXPECT_THAT(form.text, AllOf(HasSubstr("--parallelism.data_parallel_replicate_degree 2 "),
                               HasSubstr("--parallelism.data_parallel_shard_degree 8 "),
                               HasSubstr("--parallelism.fsdp_reshard_after_forward never "),
                               HasSubstr("--training.dtype float32 "), HasSubstr("--training.max_norm 1.0"),
                               HasSubstr("--training.mixed_precision_param bfloat16 "),
                               HasSubstr("--training.local_batch_size 2 "),
                               HasSubstr("--training.global_batch_size 128 ")));
  t.zero = 1;
  EXPECT_THAT(trainer_config(t, "torchtitan").unsupported_settings, Contains(HasSubstr("ZeRO stage 1")));
  t.precision = Precision::kBf16;
  EXPECT_THAT(trainer_config(t, "torchtitan").text, HasSubstr("--training.dtype bfloat16"));
}

TEST(TrainerConfig, LatentAttentionIsSaidToBeMissing) {
  Trial t = layout();
  t.spec = *shape::find_model("deepseek-v2-lite");
  for (const char* trainer : {"Megatron-LM", "nanotron"})
    EXPECT_THAT(trainer_config(t, trainer).unsupported_settings,
                Contains(HasSubstr("the deepseek_v2 family")))
        << trainer;
}

TEST(TrainerConfig, WindowsInSomeLayersAndSinksAreSaidToBeMissing) {
  for (const auto& [model, family] :
       {std::pair("gemma3-4b", "gemma3_text"), std::pair("gpt-oss-20b", "gpt_oss")}) {
    Trial t = layout();
    t.spec = *shape::find_model(model);
    for (const char* trainer : {"Megatron-LM", "nanotron"})
      EXPECT_THAT(trainer_config(t, trainer).unsupported_settings,
                  Contains(HasSubstr("the " + std::string(family) + " family")))
          << trainer;
  }
}

TEST(TrainerConfig, TorchtitanSchedulesAndChunks) {
  Trial t = layout();
  t.dp = 4, t.pp = 4, t.schedule = Schedule::kInterleaved,
  t.vpp = 4;  // 32 layers + 2 in 16 stages: 3 a stage are 12, so 2 of 32
  EXPECT_THAT(trainer_config(t, "torchtitan").text,
              AllOf(HasSubstr("--parallelism.pipeline_parallel_schedule Interleaved1F1B"),
                    HasSubstr("--parallelism.pipeline_parallel_first_stage_less_layers 0"),
                    HasSubstr("--parallelism.pipeline_parallel_layers_per_stage 2"),
                    HasSubstr("--parallelism.pipeline_parallel_microbatch_size 2"),
                    HasSubstr("--training.local_batch_size 8 ")));
  t.vpp = 2;  // its own default
  EXPECT_THAT(trainer_config(t, "torchtitan").text, Not(HasSubstr("layers_per_stage")));
  t.vpp = 1, t.schedule = Schedule::kGpipe;
  EXPECT_THAT(trainer_config(t, "torchtitan").text,
              HasSubstr("--parallelism.pipeline_parallel_schedule GPipe"));
  t.schedule = Schedule::kZeroBubble;
  EXPECT_THAT(trainer_config(t, "torchtitan").unsupported_settings, Contains(HasSubstr("zero_bubble")));
}

TEST(TrainerConfig, TorchtitanSplits) {
  Trial t = layout();
  t.dp = 2, t.tp = 2, t.cp = 4, t.ep = 2, t.zero = 3, t.sp = true, t.tp_overlap = true,
  t.offload = Offload::kParameters;
  EXPECT_THAT(trainer_config(t, "torchtitan").text,
              AllOf(HasSubstr("--parallelism.enable_async_tensor_parallel"), HasSubstr("--compile.enable"),
                    HasSubstr("--parallelism.context_parallel_rotate_method alltoall"),
                    HasSubstr("--parallelism.expert_tensor_parallel_degree 2"),
                    HasSubstr("--debug.moe_force_load_balance"), HasSubstr("--training.enable_cpu_offload")));
  t.cp_comm_type = CpCommType::kAllToAll, t.offload = Offload::kOptimizer, t.sp = false;
  EXPECT_THAT(trainer_config(t, "torchtitan").unsupported_settings,
              AllOf(Contains(HasSubstr("exchanges heads")), Contains(HasSubstr("offload optimizer")),
                    Contains(HasSubstr("without sequence parallelism"))));
}

TEST(TrainerConfig, MegatronSaysSplitsAndWhatItInsistsOn) {
  Trial t = layout();
  t.dp = 2, t.tp = 2, t.pp = 2, t.cp = 2, t.zero = 1, t.sp = true, t.schedule = Schedule::kInterleaved,
  t.vpp = 4;
  t.offload = Offload::kOptimizer, t.recompute = Recompute::kFull, t.recompute_every = 3;
  const auto form = trainer_config(t, "Megatron-LM");
  EXPECT_THAT(form.text, ::testing::StartsWith("CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun "));
  EXPECT_THAT(form.text,
              AllOf(HasSubstr("--sequence-parallel"), HasSubstr("--cp-comm-type p2p"),
                    HasSubstr("--num-virtual-stages-per-pipeline-rank 4"),
                    HasSubstr("--use-distributed-optimizer"), HasSubstr("--optimizer-cpu-offload"),
                    HasSubstr("--use-precision-aware-optimizer"), HasSubstr("--recompute-num-layers 3")));
  EXPECT_THAT(form.text,
              AllOf(HasSubstr("--bf16"), HasSubstr("--grad-reduce-in-bf16"), HasSubstr("--clip-grad 0.0"),
                    HasSubstr("--attention-dropout 0.0"), HasSubstr("--hidden-dropout 0.0"),
                    HasSubstr("--ddp-bucket-size 13107200")));  // 25 MiB of two bytes
  t.grad_dtype = GradDtype::kFp32, t.cp_comm_type = CpCommType::kAllToAll, t.grad_clip = true,
  t.recompute = Recompute::kSelective;
  EXPECT_THAT(trainer_config(t, "Megatron-LM").text,
              AllOf(HasSubstr("--accumulate-allreduce-grads-in-fp32"), HasSubstr("--cp-comm-type a2a"),
                    HasSubstr("--clip-grad 1.0"), HasSubstr("--recompute-modules core_attn"),
                    HasSubstr("--ddp-bucket-size 6553600")));
}

TEST(TrainerConfig, MegatronFsdpAndExperts) {
  Trial t = layout();
  t.zero = 3, t.dp_shard = 4, t.ep = 4, t.capacity_percent = 125, t.attention = AttentionKind::kMath;
  t.spec = *shape::find_model("mixtral-8x7b");
  const auto form = trainer_config(t, "Megatron-LM");
  EXPECT_THAT(form.text,
              AllOf(HasSubstr("--data-parallel-sharding-strategy optim_grads_params"),
                    HasSubstr("--ckpt-format fsdp_dtensor"), HasSubstr("--attention-backend unfused"),
                    HasSubstr("--num-distributed-optimizer-instances 4"), HasSubstr("--num-experts 8"),
                    HasSubstr("--moe-router-topk 2"), HasSubstr("--moe-expert-capacity-factor 1.25"),
                    HasSubstr("--moe-router-force-load-balancing")));
  EXPECT_THAT(form.text, Not(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS")));
  t.pp = 2, t.schedule = Schedule::kGpipe, t.precision = Precision::kFp16, t.activation_offload = true;
  EXPECT_THAT(trainer_config(t, "Megatron-LM").text,
              AllOf(HasSubstr("--fp16"), HasSubstr("--initial-loss-scale 65536")));
  EXPECT_THAT(trainer_config(t, "Megatron-LM").unsupported_settings,
              AllOf(Contains(HasSubstr("schedule gpipe")),
                    Contains(HasSubstr("--fine-grained-activation-offloading"))));
}

TEST(TrainerConfig, TheLossScaleStartsWhereTheTrialSays) {
  Trial t = layout();
  t.precision = Precision::kFp16;
  for (const i64 power : {0, 16, 32}) {
    t.initial_scale_power = power;
    EXPECT_THAT(trainer_config(t, "Megatron-LM").text,
                HasSubstr(fmt::format("--initial-loss-scale {} ", i64{1} << power)));
    EXPECT_EQ(nlohmann::json::parse(trainer_config(t, "DeepSpeed").text)["fp16"]["initial_scale_power"],
              power);
  }
}

TEST(TrainerConfig, SharedKeyValueHeadsAreMegatrons) {
  Trial t = layout();
  t.dp = 1, t.tp = 16, t.sp = true;
  ASSERT_LT(t.spec.kv_heads, t.tp);
  const auto says = Contains(HasSubstr("more tensor-parallel ranks than key-value heads"));
  EXPECT_THAT(trainer_config(t, "torchtitan").unsupported_settings, says);
  EXPECT_THAT(trainer_config(t, "nanotron").unsupported_settings, says);
  EXPECT_THAT(trainer_config(t, "Megatron-LM").unsupported_settings, Not(says));
}

TEST(TrainerConfig, PaddingOfTheVocabularyWhereTheTrainerHasAFlag) {
  Trial t = layout();
  t.spec.vocab_size = 50257, t.tp = 2, t.dp = 8;
  EXPECT_THAT(trainer_config(t, "Megatron-LM").text, HasSubstr("--make-vocab-size-divisible-by 1 "));
  EXPECT_THAT(trainer_config(t, "nanotron").text, HasSubstr("make_vocab_size_divisible_by: 1\n"));
  EXPECT_THAT(trainer_config(t, "torchtitan").unsupported_settings, Contains(HasSubstr("50258")));
  EXPECT_THAT(trainer_config(t, "DeepSpeed").unsupported_settings,
              Contains(HasSubstr("resize_token_embeddings(50258)")));
  t.vocab_multiple = 128;
  EXPECT_THAT(trainer_config(t, "Megatron-LM").text, HasSubstr("--make-vocab-size-divisible-by 128 "));
  EXPECT_THAT(trainer_config(t, "nanotron").text, HasSubstr("make_vocab_size_divisible_by: 128\n"));
  EXPECT_THAT(trainer_config(t, "torchtitan").unsupported_settings, Contains(HasSubstr("50432")));
  t.spec.vocab_size = 50432;  // nothing to pad
  EXPECT_THAT(trainer_config(t, "torchtitan").unsupported_settings,
              Not(Contains(HasSubstr("vocabulary padded"))));
  EXPECT_THAT(trainer_config(t, "DeepSpeed").unsupported_settings,
              Not(Contains(HasSubstr("vocabulary padded"))));
}

TEST(TrainerConfig, NanotronKeys) {
  Trial t = layout();
  t.dp = 4, t.tp = 2, t.pp = 2, t.zero = 1, t.sp = true, t.tp_overlap = true, t.schedule = Schedule::kGpipe,
  t.grad_dtype = GradDtype::kFp32;
  const auto form = trainer_config(t, "nanotron");
  EXPECT_THAT(form.text, AllOf(HasSubstr("pp_engine: afab"), HasSubstr("tp_mode: REDUCE_SCATTER"),
                               HasSubstr("tp_linear_async_communication: true"), HasSubstr("zero_stage: 1"),
                               HasSubstr("accumulate_grad_in_fp32: true"), HasSubstr("clip_grad: null"),
                               HasSubstr("ddp_bucket_cap_mb: 25"), HasSubstr("is_llama_config: true"),
                               HasSubstr("batch_accumulation_per_replica: 4"), HasSubstr("dtype: bfloat16")));
  t.cp = 2, t.zero = 3, t.schedule = Schedule::kInterleaved, t.vpp = 2, t.recompute = Recompute::kSelective;
  EXPECT_THAT(trainer_config(t, "nanotron").text,
              AllOf(HasSubstr("is_qwen2_config: true"), HasSubstr("_attn_implementation: ring"),
                    HasSubstr("pp_engine: 1f1b")));
  EXPECT_THAT(trainer_config(t, "nanotron").unsupported_settings,
              AllOf(Contains(HasSubstr("ZeRO stage 3")), Contains(HasSubstr("schedule interleaved")),
                    Contains(HasSubstr("selective recomputation"))));
}

TEST(TrainerConfig, DeepSpeedJson) {
  Trial t = layout();
  t.zero = 3, t.offload = Offload::kParameters, t.cp = 2, t.cp_comm_type = CpCommType::kAllToAll,
  t.dp_shard = 4, t.grad_clip = true;
  const auto form = trainer_config(t, "DeepSpeed");
  const auto config = nlohmann::json::parse(form.text);
  EXPECT_FALSE(config.at("zero_optimization").contains("mics_shard_size"));  // 0.19.8 refuses the key
  EXPECT_THAT(form.unsupported_settings, Contains(HasSubstr("hybrid sharding")));
  EXPECT_EQ(config.at("zero_optimization").at("reduce_bucket_size"), 13107200);
  EXPECT_EQ(config.at("zero_optimization").at("offload_param").at("device"), "cpu");
  EXPECT_EQ(config.at("sequence_parallel_size"), 2);
  EXPECT_EQ(config.at("gradient_clipping"), 1.0);
  EXPECT_EQ(config.at("data_types").at("grad_accum_dtype"), "bf16");
  EXPECT_TRUE(config.at("bf16").at("enabled"));
  t.precision = Precision::kBf16, t.offload = Offload::kDisk, t.cp_comm_type = CpCommType::kRing, t.ep = 2,
  t.recompute = Recompute::kFull;
  const auto other = nlohmann::json::parse(trainer_config(t, "DeepSpeed").text);
  EXPECT_TRUE(other.at("bf16").at("bf16_optimizer_states"));
  EXPECT_EQ(other.at("zero_optimization").at("offload_optimizer").at("device"), "nvme");
  EXPECT_EQ(other.at("expert_parallel").at("autoep_size"), 2);
  EXPECT_FALSE(other.at("zero_optimization").contains("offload_param"));
  t.offload = Offload::kDiskParameters;
  const auto both = nlohmann::json::parse(trainer_config(t, "DeepSpeed").text).at("zero_optimization");
  EXPECT_EQ(both.at("offload_optimizer").at("device"), "nvme");
  EXPECT_EQ(both.at("offload_param").at("device"), "nvme");
  EXPECT_THAT(trainer_config(t, "DeepSpeed").unsupported_settings,
              AllOf(Contains(HasSubstr("cp 2 as a ring")), Contains(HasSubstr("full recomputation"))));
}

TEST(TrainerConfig, SayWhatTheyCannotExpress) {
  Trial t = llama_8b();
  t.tp = 2;
  t.dp = 4, t.pp = 2, t.zero = 2, t.micro_batch_size = 2, t.grad_accum = 8;
  t.global_batch_size = 64, t.precision = Precision::kBf16, t.recompute = Recompute::kSelective;
  t.nodes = 2, t.gpus_per_node = 8;
  const TrainerConfig forms[] = {trainer_config(t, "torchtitan"), trainer_config(t, "Megatron-LM"),
                                 trainer_config(t, "nanotron"), trainer_config(t, "DeepSpeed")};
  EXPECT_THAT(forms[0].text, HasSubstr("--parallelism.pipeline_parallel_microbatch_size 2"));
  EXPECT_THAT(forms[0].text, HasSubstr("--training.local_batch_size 16"));
  EXPECT_THAT(forms[0].text, HasSubstr("--parallelism.data_parallel_shard_degree 4"));
  EXPECT_THAT(forms[1].text, HasSubstr("--pipeline-model-parallel-size 2"));
  EXPECT_THAT(forms[1].text, HasSubstr("--num-query-groups 8"));
  EXPECT_THAT(forms[2].text, HasSubstr("batch_accumulation_per_replica: 8"));
  EXPECT_THAT(forms[2].unsupported_settings, Contains(HasSubstr("ZeRO stage 2")));
  const auto config = nlohmann::json::parse(forms[3].text);
  EXPECT_EQ(config.at("train_batch_size"), 64);
  EXPECT_EQ(config.at("zero_optimization").at("stage"), 2);
  EXPECT_EQ(config.at("tensor_parallel").at("autotp_size"), 2);
  EXPECT_THAT(forms[3].unsupported_settings, Contains(HasSubstr("pp 2")));
}

TEST(TrainerConfig, AnImportedRowWithoutDimensionsIsNoError) {
  Trial t = llama_8b();
  t.spec = {};
  for (const auto& form : trainer_configs(t)) EXPECT_FALSE(form.text.empty());
  EXPECT_THAT(trainer_config(t, "Megatron-LM").unsupported_settings,
              Contains(HasSubstr("the import did not give them")));
}

}  // namespace
}  // namespace sweep::interop
