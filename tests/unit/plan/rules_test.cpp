// Each rule by name, with the numbers in its sentence, and its nearest neighbour that is fine.
#include "orchestrator/plan/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::plan {
namespace {

using ::testing::HasSubstr;

Trial base() {
  Trial t;
  t.model = "llama3-8b";
  t.spec = *shape::find_model("llama3-8b");
  t.hardware = "h100-sxm-80gb";
  t.precision = Precision::kBf16;
  t.gpus_per_node = t.dp = t.global_batch_size = 8;
  t.seq_len = 4096;
  return t;
}

// base() with a change; dp and the batch follow from the other degrees.
Trial changed(const std::function<void(Trial&)>& change) {
  Trial t = base();
  change(t);
  if (t.tp * t.pp * t.cp > 0) t.dp = std::max<i64>(1, t.nodes * t.gpus_per_node / (t.tp * t.pp * t.cp));
  t.global_batch_size = t.dp * t.micro_batch_size * t.grad_accum;
  return t;
}

struct Case {
  const char* name;
  std::function<void(Trial&)> change;
  const char* rule;  // nullptr: no objection
  const char* reason;
  Outcome verdict = Outcome::kPruned;
};

class Rule : public ::testing::TestWithParam<Case> {};

TEST_P(Rule, Objects) {
  const auto o = first_objection(changed(GetParam().change));
  if (!GetParam().rule) {
    EXPECT_FALSE(o.has_value()) << o->rule << ": " << o->reason;
    return;
  }
  ASSERT_TRUE(o.has_value());
  EXPECT_EQ(o->rule, GetParam().rule) << o->reason;
  EXPECT_THAT(o->reason, HasSubstr(GetParam().reason));
  EXPECT_EQ(o->verdict, GetParam().verdict);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Rule,
    ::testing::Values(
        Case{"fine", [](Trial&) {}, nullptr, ""},  //
        Case{"tp_fine", [](Trial& t) { t.tp = 8; }, nullptr, ""},
        Case{"tp_over_nodes_is_only_a_warning", [](Trial& t) { t.nodes = 2, t.tp = 16; }, nullptr, ""},
        Case{"heads", [](Trial& t) { t.gpus_per_node = t.tp = 3; }, "divisibility",
             "32 heads cannot be split over tp=3"},
        Case{"kv_heads",
             [](Trial& t) { t.spec.heads = 12, t.spec.kv_heads = 6, t.spec.head_dim = 128, t.tp = 4; },
             "divisibility", "kv_heads 6 and tp 4"},
        Case{"pieces_of_a_kv_head",
             [](Trial& t) { t.spec.heads = 8, t.spec.kv_heads = 1, t.spec.head_dim = 4, t.tp = 8; },
             "divisibility", "head_dim 4 is not divisible by the 8 ranks that share a key-value head"},
        Case{"intermediate", [](Trial& t) { t.spec.intermediate_size = 14337, t.tp = 2; }, "divisibility",
             "intermediate_size 14337 is not divisible by tp=2"},
        Case{"odd_vocabulary_is_padded", [](Trial& t) { t.spec.vocab_size = 50257, t.tp = 2; }, nullptr, ""},
        Case{"odd_vocabulary_is_fine_alone", [](Trial& t) { t.spec.vocab_size = 50257; }, nullptr, ""},
        Case{"rank_of_padding", [](Trial& t) { t.spec.vocab_size = 200, t.tp = 2, t.vocab_multiple = 256; },
             "divisibility", "use a smaller vocab_multiple"},
        Case{"env", [](Trial& t) { t.env = "NCCL_ALGO=Ring"; }, nullptr, ""},
        Case{"env_of_another_process", [](Trial& t) { t.env = "LD_PRELOAD=x.so"; }, "env", "LD_PRELOAD"},
        Case{"env_of_a_command", [](Trial& t) { t.env = "NCCL_ALGO=Ring", t.workload = Workload::kCommand; },
             "env", "workload"},
        Case{"vocab_multiple", [](Trial& t) { t.vocab_multiple = 0; }, "range", "vocab_multiple = 0"},
        Case{"context", [](Trial& t) { t.cp = 4, t.seq_len = 4100; }, "divisibility",
             "seq_len 4100 is not divisible by 2*cp=8"},
        Case{"pipeline", [](Trial& t) { t.nodes = 8, t.pp = 64; }, "pipeline", "pp 64 > layers 32"},
        Case{"pipeline_one_stage", [](Trial& t) { t.schedule = Schedule::kGpipe; }, "pipeline",
             "schedule gpipe with pp 1: there is no pipeline"},
        Case{"pipeline_chunks", [](Trial& t) { t.pp = 2, t.vpp = 2; }, "pipeline",
             "vpp 2 > 1 with schedule 1f1b"},
        Case{"pipeline_empty_chunk",
             [](Trial& t) { t.pp = 4, t.vpp = 9, t.schedule = Schedule::kInterleaved, t.grad_accum = 4; },
             "pipeline", "pp 4 x vpp 9 > layers 32"},
        Case{"pipeline_listed", [](Trial& t) { t.pp = 2, t.stage_layers = "20 10"; }, "pipeline",
             "stage_layers '20 10'"},
        Case{"pipeline_listed_fine", [](Trial& t) { t.pp = 2, t.stage_layers = "20 12"; }, nullptr, ""},
        Case{"pipeline_groups",
             [](Trial& t) { t.pp = 4, t.vpp = 2, t.schedule = Schedule::kInterleaved, t.grad_accum = 6; },
             "pipeline", "grad_accum 6 % pp 4 = 2"},
        Case{"pipeline_interleaved",
             [](Trial& t) { t.pp = 4, t.vpp = 8, t.schedule = Schedule::kInterleaved, t.grad_accum = 8; },
             nullptr, ""},
        Case{"recompute_every", [](Trial& t) { t.recompute_every = 2; }, "recompute",
             "recompute_every 2 with recompute none"},
        Case{"recompute_every_too_many",
             [](Trial& t) { t.recompute = Recompute::kFull, t.recompute_every = 33; }, "recompute",
             "recompute_every 33 > layers 32"},
        Case{"pipeline_fine", [](Trial& t) { t.nodes = 4, t.pp = 32; }, nullptr, ""},
        Case{"zero", [](Trial& t) { t.zero = 1, t.tp = 8; }, "zero", "nothing to shard"},
        Case{"zero_over_context", [](Trial& t) { t.zero = 1, t.cp = 8; }, nullptr, ""},
        Case{"positions", [](Trial& t) { t.spec = *shape::find_model("gpt2"), t.seq_len = 2048; },
             "positions", "seq_len 2048 > 1024"},
        Case{"bf16_on_v100", [](Trial& t) { t.hardware = "v100-16gb"; }, "precision", "v100-16gb has no bf16",
             Outcome::kUnsupported},
        Case{"flash_on_v100",
             [](Trial& t) {
               t.hardware = "v100-16gb", t.precision = Precision::kFp16, t.attention = AttentionKind::kFlash;
             },
             "attention", "v100-16gb has 7.0", Outcome::kUnsupported},
        Case{"flash_on_a100", [](Trial& t) { t.hardware = "a100-80gb", t.attention = AttentionKind::kFlash; },
             nullptr, ""},
        Case{"flash_with_wide_heads",
             [](Trial& t) { t.spec.head_dim = 100, t.attention = AttentionKind::kFlash; }, "attention",
             "a multiple of 8, not 100", Outcome::kUnsupported},
        Case{"auto_with_wide_heads", [](Trial& t) { t.spec.head_dim = 100; }, nullptr, ""},
        Case{"odd_nodes_of_two_kinds", [](Trial& t) { t.hardware = "a100-80gb+h100-sxm-80gb"; }, "hardware", "2 kinds"},
        Case{"nccl_on_processors", [](Trial& t) { t.hardware = "cpu", t.backend = CommBackend::kNccl; }, "hardware",
             "backend nccl needs GPUs"},
        Case{"shm_on_two_nodes",
             [](Trial& t) { t.hardware = "cpu", t.backend = CommBackend::kShm, t.nodes = 2, t.dp = 16; }, "hardware",
             "backend shm is the memory of one node"},
        Case{"flash_in_fp32",
             [](Trial& t) { t.precision = Precision::kFp32, t.attention = AttentionKind::kFlash; },
             "attention", "not fp32", Outcome::kUnsupported},
        Case{"sdpa_on_v100",
             [](Trial& t) {
               t.hardware = "v100-16gb", t.precision = Precision::kFp32, t.attention = AttentionKind::kSdpa;
             },
             nullptr, ""},
        Case{"cudnn_on_v100",
             [](Trial& t) {
               t.hardware = "v100-16gb", t.precision = Precision::kFp16, t.attention = AttentionKind::kCudnn;
             },
             "attention", "cudnn needs compute capability 8.0, v100-16gb has 7.0", Outcome::kUnsupported},
        Case{"cudnn_in_fp32",
             [](Trial& t) { t.precision = Precision::kFp32, t.attention = AttentionKind::kCudnn; },
             "attention", "not fp32", Outcome::kUnsupported},
        Case{"cudnn_with_wide_heads",
             [](Trial& t) { t.spec.head_dim = 256, t.attention = AttentionKind::kCudnn; }, "attention",
             "at most 128 and a multiple of 8, not 256", Outcome::kUnsupported},
        Case{"sdpa_with_a_window",
             [](Trial& t) { t.spec.sliding_window = 512, t.attention = AttentionKind::kSdpa; }, "attention",
             "no sliding window (512 < seq_len", Outcome::kUnsupported},
        Case{"sdpa_with_windows_in_some_layers",
             [](Trial& t) { t.spec = *shape::find_model("gemma3-4b"), t.attention = AttentionKind::kSdpa; },
             "attention", "no sliding window (1024 < seq_len", Outcome::kUnsupported},
        Case{"math_with_sinks",
             [](Trial& t) { t.spec = *shape::find_model("gpt-oss-20b"), t.attention = AttentionKind::kMath; },
             "attention", "math has no sinks", Outcome::kUnsupported},
        Case{"flash_with_relative_positions",
             [](Trial& t) {
               t.spec = *shape::find_model("t5-v1_1-base"), t.attention = AttentionKind::kFlash,
               t.precision = Precision::kBf16;
             },
             "attention", "no learned bias of the scores", Outcome::kUnsupported},
        Case{"sinks_in_fp32",
             [](Trial& t) { t.spec = *shape::find_model("gpt-oss-20b"), t.precision = Precision::kFp32; },
             "attention", "math has no sinks", Outcome::kUnsupported},
        Case{"sinks_in_flash",
             [](Trial& t) { t.spec = *shape::find_model("gpt-oss-20b"), t.precision = Precision::kBf16; }, nullptr,
             ""},
        Case{"sdpa_on_cpu", [](Trial& t) { t.hardware = "cpu", t.attention = AttentionKind::kSdpa; },
             "attention", "sdpa is a kernel of GPUs", Outcome::kUnsupported},
        Case{"ring_with_sdpa",
             [](Trial& t) {
               t.cp = 2, t.cp_comm_type = CpCommType::kRing, t.attention = AttentionKind::kSdpa;
             },
             "attention", "needs flash attention", Outcome::kUnsupported},
        Case{"graphs", [](Trial& t) { t.cuda_graph = true; }, nullptr, ""},
        Case{"graphs_on_cpu", [](Trial& t) { t.hardware = "cpu", t.cuda_graph = true; }, "cuda_graph",
             "needs a GPU", Outcome::kUnsupported},
        Case{"graphs_of_stages", [](Trial& t) { t.pp = 8, t.cuda_graph = true; }, "cuda_graph", "pp above 1",
             Outcome::kUnsupported},
        Case{"graphs_of_even_experts",
             [](Trial& t) { t.spec = *shape::find_model("mixtral-8x7b"), t.cuda_graph = true; }, nullptr, ""},
        Case{"graphs_of_learned_routes",
             [](Trial& t) {
               t.spec = *shape::find_model("mixtral-8x7b"), t.cuda_graph = true;
               t.routing = Routing::kLearned;
             },
             "cuda_graph", "learned", Outcome::kUnsupported},
        Case{"graphs_over_gloo", [](Trial& t) { t.backend = CommBackend::kGloo, t.cuda_graph = true; },
             "cuda_graph", "host memory", Outcome::kUnsupported},
        Case{"graphs_in_fp16", [](Trial& t) { t.precision = Precision::kFp16, t.cuda_graph = true; },
             "cuda_graph", "fp16", Outcome::kUnsupported},
        Case{"graphs_in_fp16_amp", [](Trial& t) { t.precision = Precision::kFp16Amp, t.cuda_graph = true; },
             "cuda_graph", "fp16_amp", Outcome::kUnsupported},
        Case{"graphs_of_documents",
             [](Trial& t) { t.packing = true, t.lengths = "fixed 100", t.cuda_graph = true; }, "cuda_graph",
             "packing", Outcome::kUnsupported},
        Case{"graphs_with_offloading",
             [](Trial& t) { t.activation_offload = true, t.cuda_graph = true; }, "cuda_graph",
             "offloaded parameters or activations", Outcome::kUnsupported},
        Case{"auto_in_fp32", [](Trial& t) { t.precision = Precision::kFp32; }, nullptr, ""},
        Case{"ring_in_fp32",
             [](Trial& t) { t.cp = 2, t.cp_comm_type = CpCommType::kRing, t.precision = Precision::kFp32; },
             "attention", "needs flash attention", Outcome::kUnsupported},
        Case{"ring_on_cpu_in_fp32",
             [](Trial& t) {
               t.hardware = "cpu", t.cp = 2, t.cp_comm_type = CpCommType::kRing;
               t.precision = Precision::kFp32;
             },
             nullptr, ""},
        Case{"flash_on_cpu", [](Trial& t) { t.hardware = "cpu", t.attention = AttentionKind::kFlash; },
             nullptr, ""},
        Case{"fp8_on_cpu", [](Trial& t) { t.hardware = "cpu", t.precision = Precision::kFp8; }, "precision",
             "no fp8", Outcome::kUnsupported},
        Case{"fp8_on_a100", [](Trial& t) { t.hardware = "a100-80gb", t.precision = Precision::kFp8; },
             "precision", "no fp8", Outcome::kUnsupported},
        Case{"bf16_on_cpu", [](Trial& t) { t.hardware = "cpu"; }, nullptr, ""},
        Case{"unknown_hardware", [](Trial& t) { t.hardware = "h100"; }, "hardware",
             "unknown hardware 'h100'"},
        Case{"stage", [](Trial& t) { t.zero = 4; }, "range", "zero = 4"},
        Case{"bucket_at_its_end", [](Trial& t) { t.grad_bucket_mb = 65'536; }, nullptr, ""},
        Case{"bucket_over_its_end", [](Trial& t) { t.grad_bucket_mb = 65'537; }, "range",
             "65537 is outside 1 .. 65536"},
        Case{"cap_below_its_end", [](Trial& t) { t.memory_cap_bytes = 511; }, "range",
             "memory_cap_bytes = 511"},
        Case{"hot_percent", [](Trial& t) { t.hot_percent = 101; }, "range", "hot_percent = 101"},
        Case{"sequence", [](Trial& t) { t.seq_len = 0; }, "range", "seq_len = 0"},
        Case{"degree", [](Trial& t) { t.tp = 0; }, "rank_algebra", "tp = 0"},
        Case{"model", [](Trial& t) { t.spec.kv_heads = 5; }, "range", "heads 32 % kv_heads 5 = 2"}),
    [](const auto& info) { return info.param.name; });

TEST(Rules, RankAlgebraAndBatchPrintTheEquation) {
  Trial t = base();
  t.dp = 4;
  EXPECT_EQ(first_objection(t)->rule, "rank_algebra");
  EXPECT_THAT(first_objection(t)->reason,
              HasSubstr("nodes x gpus_per_node = 1 x 8 = 8, but dp x tp x pp x cp = 4 x 1 x 1 x 1 = 4"));
  t = base();
  t.global_batch_size = 9;
  EXPECT_EQ(first_objection(t)->rule, "divisibility");
  EXPECT_THAT(first_objection(t)->reason,
              HasSubstr("dp x micro_batch_size x grad_accum = 8 x 1 x 1 = 8, but global_batch_size = 9"));
  t = base();
  t.ep = 3;
  EXPECT_THAT(first_objection(t)->reason, HasSubstr("dp x cp / ep = 8 x 1 / 3"));
}

TEST(Rules, HugeNumbersAreOutOfRangeNotOverflow) {
  Trial t = base();
  t.seq_len = t.micro_batch_size = t.grad_accum = t.global_batch_size = std::numeric_limits<i64>::max();
  EXPECT_EQ(first_objection(t)->rule, "range");
  t = base();
  t.dp = t.tp = t.pp = std::numeric_limits<i64>::max();
  EXPECT_EQ(first_objection(t)->rule, "rank_algebra");
}

TEST(Rules, ANodeWithLittleHostMemoryHoldsNoGatheredCheckpoint) {
  Trial t = base();  // 8 billion parameters, 6 bytes each
  t.checkpoint = CheckpointKind::kFull, t.host_memory_cap_bytes = i64{40'000'000'000};
  ASSERT_TRUE(first_objection(t));
  EXPECT_EQ(first_objection(t)->rule, "host_memory");
  t.host_memory_cap_bytes = i64{50'000'000'000};
  EXPECT_FALSE(first_objection(t));
  t.host_memory_cap_bytes = i64{40'000'000'000}, t.checkpoint = CheckpointKind::kSharded;
  EXPECT_FALSE(first_objection(t));
}

TEST(NotBuiltYet, SaysWhichCheckpointsAreNotWritten) {
  Trial t = changed([](Trial& x) { x.tp = 2, x.checkpoint = CheckpointKind::kFull; });
  ASSERT_TRUE(not_built_yet(t));
  EXPECT_EQ(not_built_yet(t)->verdict, Outcome::kUnsupported);
  t.checkpoint = CheckpointKind::kAsync;
  EXPECT_FALSE(not_built_yet(t));
}

TEST(NotBuiltYet, PlainDataParallelismIsBuilt) {
  EXPECT_FALSE(not_built_yet(base()).has_value());
  Trial t = base();
  t.precision = Precision::kFp32;
  EXPECT_FALSE(not_built_yet(t).has_value());
}

TEST(NotBuiltYet, MoreTensorParallelRanksThanKeyValueHeadsAreBuilt) {
  const Trial t = changed([](Trial& x) { x.nodes = 2, x.tp = 16; });
  EXPECT_LT(t.spec.kv_heads, t.tp);
  EXPECT_FALSE(not_built_yet(t).has_value());
  EXPECT_FALSE(first_objection(t).has_value());
}

TEST(NotBuiltYet, NamesEverythingThatIsMissing) {
  const Trial t = changed([](Trial& x) { x.pp = 2, x.workload = Workload::kProof; });
  const auto o = not_built_yet(t);
  ASSERT_TRUE(o.has_value());
  EXPECT_EQ(o->verdict, Outcome::kUnsupported);
  EXPECT_EQ(o->rule, "unsupported");
  EXPECT_THAT(o->reason, HasSubstr("workload other than step"));
  EXPECT_THAT(o->reason, Not(HasSubstr("pp > 1")));
}

TEST(NotBuiltYet, SaysWhichPackedDocumentsDoNotRun) {
  const auto reason = [](auto change) { return not_built_yet(changed(change)).value_or(Objection{}).reason; };
  const auto packed = [&](auto change) {
    return reason([&](Trial& t) { t.packing = true, t.lengths = "lognormal 300 0.8", change(t); });
  };
  EXPECT_EQ(packed([](Trial& t) { t.zero = 3, t.recompute = Recompute::kFull; }), "");
  EXPECT_EQ(reason([](Trial& t) { t.cp = 2, t.lengths = "fixed 300"; }), "");
  EXPECT_THAT(reason([](Trial& t) { t.packing = true; }), HasSubstr("give lengths"));
  EXPECT_THAT(packed([](Trial& t) { t.cp = 2; }), HasSubstr("cp 2"));
  EXPECT_THAT(packed([](Trial& t) { t.attention = AttentionKind::kSdpa; }), HasSubstr("attention sdpa"));
  EXPECT_THAT(packed([](Trial& t) { t.attention = AttentionKind::kCudnn; }), HasSubstr("attention cudnn"));
  EXPECT_THAT(packed([](Trial& t) { t.seq_len = 2 << 20; }), HasSubstr("seq_len 2097152"));
  EXPECT_THAT(reason([](Trial& t) { t.lengths = "gamma 3"; }), HasSubstr("lengths 'gamma 3'"));
}

TEST(NotBuiltYet, SaysWhyModelStatesDoNotGoTogether) {
  const auto reason = [](auto change) { return not_built_yet(changed(change)).value_or(Objection{}).reason; };
  EXPECT_THAT(reason([](Trial& t) { t.precision = Precision::kFp8, t.spec.intermediate_size += 8; }),
              HasSubstr("multiples of 16"));
  EXPECT_THAT(reason([](Trial& t) { t.precision = Precision::kFp16, t.grad_dtype = GradDtype::kBf16; }),
              HasSubstr("grad_dtype bf16"));
  EXPECT_THAT(reason([](Trial& t) { t.dp_shard = 2; }),
              HasSubstr("dp_shard 2 of dp 8 divides nothing at zero 0"));
  EXPECT_THAT(reason([](Trial& t) { t.zero = 2, t.offload = Offload::kParameters; }),
              HasSubstr("parameters with zero 2"));
  EXPECT_EQ(reason([](Trial& t) { t.zero = 3, t.offload = Offload::kParameters, t.dp_shard = 2; }), "");
  EXPECT_THAT(reason([](Trial& t) { t.lora_rank = 8, t.precision = Precision::kFp8; }),
              HasSubstr("lora_rank 8 with precision fp8"));
  EXPECT_EQ(reason([](Trial& t) { t.lora_rank = 8, t.zero = 3; }), "");
}

TEST(NotBuiltYet, AnExpertGroupThatLeavesItsShardSet) {
  const auto reason = [](i64 ep, i64 set) {
    return not_built_yet(changed([&](Trial& t) {
             t.spec.family = "mixtral", t.spec.experts = 8, t.spec.experts_per_token = 2;
             t.zero = 3, t.ep = ep, t.dp_shard = set;
           }))
        .value_or(Objection{})
        .reason;
  };
  EXPECT_EQ(reason(2, 4), "");
  EXPECT_EQ(reason(4, 4), "");
  EXPECT_THAT(reason(4, 2), HasSubstr("ep 4 does not divide a shard set of 2 ranks"));
}

TEST(NotBuiltYet, AQuantizedBaseIsFrozenAndInWholeBlocks) {
  const auto reason = [](auto change) {
    return not_built_yet(changed([&](Trial& t) {
             t.quantize_base = QuantizeBase::kNf4, t.lora_rank = 8;
             change(t);
           }))
        .value_or(Objection{})
        .reason;
  };
  EXPECT_EQ(reason([](Trial&) {}), "");
  EXPECT_EQ(reason([](Trial& t) { t.zero = 3, t.tp = 8; }), "");
  EXPECT_THAT(reason([](Trial& t) { t.lora_rank = 0; }), HasSubstr("quantize_base nf4 without adapters"));
  EXPECT_THAT(reason([](Trial& t) { t.zero = 3, t.offload = Offload::kParameters; }),
              HasSubstr("parameters outside the device"));
  EXPECT_EQ(reason([](Trial& t) { t.spec.experts = 4, t.lora_targets = LoraTargets::kAttention; }), "");
  EXPECT_THAT(reason([](Trial& t) {
                t.spec = *shape::find_model("deepseek-v2-lite"), t.lora_targets = LoraTargets::kAttention;
              }),
              HasSubstr("with latent attention"));
  EXPECT_THAT(reason([](Trial& t) { t.hardware = "v100-16gb"; }), HasSubstr("compute capability 7.5"));
  EXPECT_THAT(reason([](Trial& t) { t.spec.intermediate_size = 11008, t.tp = 8; }),
              HasSubstr("intermediate_size / tp is 1376"));
}

TEST(Hardware, SharedMemoryCarriesNothingBetweenGpus) {
  const auto rule = [](const char* hardware) {
    return first_objection(changed([&](Trial& t) { t.hardware = hardware, t.backend = CommBackend::kShm; }))
        .value_or(Objection{})
        .rule;
  };
  EXPECT_EQ(rule("h100-sxm-80gb"), "hardware");
  EXPECT_EQ(rule("cpu"), "");
}

}  // namespace
}  // namespace sweep::plan
