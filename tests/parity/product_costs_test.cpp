// The cost of products of strategies for each rank: the bytes and calls that it sends equal the closed forms
// of bench_kernels/shape, dimension by dimension, and the peak of its memory equals the dry run's to the
// byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/step/traffic_check.h"
#include "tests/parity/cost_cases.h"
#include "tests/parity/layouts.h"
#include "tests/parity/one_core.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

using shape::Dimension;

const CostCase kCosts[] = {
    {"zero1", {2}, [](Trial& t) { t.zero = 1; }},
    {"zero2", {2}, [](Trial& t) { t.zero = 2; }},
    {"zero3", {2}, [](Trial& t) { t.zero = 3; }},
    {"zero3_kept", {2}, [](Trial& t) { t.zero = 3, t.reshard_after_forward = false; }},
    {"zero3_full", {2}, [](Trial& t) { t.zero = 3, t.recompute = Recompute::kFull; }},
    {"zero3_full_every2",
     {2},
     [](Trial& t) { t.zero = 3, t.recompute = Recompute::kFull, t.recompute_every = 2; }},
    {"zero3_full_every3_ahead",
     {2},
     [](Trial& t) {
       t.zero = 3, t.recompute = Recompute::kFull, t.recompute_every = 3;
       t.prefetch_forward = t.prefetch_backward = 2;
     }},
    {"zero3_full_every4_none_ahead",
     {2},
     [](Trial& t) {
       t.zero = 3, t.recompute = Recompute::kFull, t.recompute_every = 4;
       t.prefetch_forward = t.prefetch_backward = 0;
     }},
    {"zero3_post", {2}, [](Trial& t) { t.zero = 3, t.backward_prefetch = BackwardPrefetch::kPost; }},
    {"zero3_post_full_every2_ahead",
     {2},
     [](Trial& t) {
       t.zero = 3, t.recompute = Recompute::kFull, t.recompute_every = 2;
       t.prefetch_backward = 2, t.backward_prefetch = BackwardPrefetch::kPost;
     }},
    {"dp4_ep2_zero3_post",
     {4, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.zero = 3, t.backward_prefetch = BackwardPrefetch::kPost; }},
    {"dp2_pp2_zero3_post_zero_bubble",
     {2, 1, 2},
     [](Trial& t) { zero_bubble(t), t.zero = 3, t.backward_prefetch = BackwardPrefetch::kPost; }},
    {"pp2_stage_layers", {1, 1, 2}, [](Trial& t) { t.stage_layers = "1 3"; }},
    {"pp3_tp2_stage_layers_tied", {1, 2, 3}, [](Trial& t) { tied(t), t.stage_layers = "1 2 1"; }},
    {"dp2_pp2_stage_layers_zero3", {2, 1, 2}, [](Trial& t) { t.zero = 3, t.stage_layers = "3 1"; }},
    {"clip_alone", {1}, [](Trial& t) { t.grad_clip = true; }},
    {"zero3_hybrid_clip", {4}, [](Trial& t) { t.zero = 3, t.dp_shard = 2, t.grad_clip = true; }},
    {"dp4_zero2_hybrid_experts", {4}, [](Trial& t) { experts(t), t.zero = 2, t.dp_shard = 2; }},
    {"dp4_zero3_hybrid_experts", {4}, [](Trial& t) { experts(t), t.zero = 3, t.dp_shard = 2; }},
    {"dp4_pp2_zero3_hybrid", {4, 1, 2}, [](Trial& t) { t.zero = 3, t.dp_shard = 2; }},
    {"dp4_ep2_zero1_hybrid", {4, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.zero = 1, t.dp_shard = 2; }},
    {"dp4_ep2_zero2_hybrid_skewed",
     {4, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.zero = 2, t.dp_shard = 2, t.routing = Routing::kSkewed; }},
    {"dp8_ep2_zero1_hybrid", {8, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.zero = 1, t.dp_shard = 4; }},
    {"dp8_ep2_zero2_hybrid_clip",
     {8, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.zero = 2, t.dp_shard = 4, t.grad_clip = true; }},
    {"dp8_ep2_zero3_hybrid_mixed",
     {8, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.zero = 3, t.dp_shard = 4, t.precision = Precision::kBf16Mixed; }},
    {"dp8_ep4_zero3_hybrid_learned",
     {8, 1, 1, 1, 4},
     [](Trial& t) { experts(t), t.zero = 3, t.dp_shard = 4, t.routing = Routing::kLearned; }},
    {"dp4_ep2_zero3_whole_set", {4, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.zero = 3, t.dp_shard = 4; }},
    {"dp4_cp2_ep2_zero3_hybrid_full",
     {4, 1, 1, 2, 2},
     [](Trial& t) { experts(t), t.zero = 3, t.dp_shard = 2, t.recompute = Recompute::kFull; }},
    {"dp4_tp2_ep2_zero3_hybrid_gpt_oss",
     {4, 2, 1, 1, 2},
     [](Trial& t) { with_sinks(t), t.sp = true, t.zero = 3, t.dp_shard = 2; }},
    {"dp4_tp2_ep2_zero2_hybrid_deepseek",
     {4, 2, 1, 1, 2},
     [](Trial& t) { deepseek(t), t.zero = 2, t.dp_shard = 2, t.recompute = Recompute::kSelective; }},
    {"dp4_pp2_ep2_zero1_hybrid", {4, 1, 2, 1, 2}, [](Trial& t) { experts(t), t.zero = 1, t.dp_shard = 2; }},
    {"dp4_pp2_ep2_zero3_hybrid_zero_bubble",
     {4, 1, 2, 1, 2},
     [](Trial& t) { experts(t), zero_bubble(t), t.zero = 3, t.dp_shard = 2; }},
    {"dp4_ep2_zero3_hybrid_offloaded",
     {4, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.zero = 3, t.dp_shard = 2, t.offload = Offload::kParameters; }},
    {"tp2", {1, 2}, nothing},
    {"tp2_full", {1, 2}, [](Trial& t) { t.recompute = Recompute::kFull; }},
    {"tp2_full_every2", {1, 2}, [](Trial& t) { t.recompute = Recompute::kFull, t.recompute_every = 2; }},
    {"tp2_selective", {1, 2}, [](Trial& t) { t.recompute = Recompute::kSelective; }},
    {"tp2_sp_full", {1, 2}, [](Trial& t) { t.sp = true, t.recompute = Recompute::kFull; }},
    {"tp2_qwen3", {1, 2}, norms_heads},
    {"tp4_kv2_qwen3_sp", {1, 4}, [](Trial& t) { norms_heads(t), grouped_query(t), t.sp = true; }},
    {"dp2_tp2_qwen3_zero1", {2, 2}, [](Trial& t) { norms_heads(t), t.zero = 1; }},
    {"dp2_tp2_qwen3_zero2", {2, 2}, [](Trial& t) { norms_heads(t), t.zero = 2; }},
    {"dp2_tp2_qwen3_zero3_mixed",
     {2, 2},
     [](Trial& t) { norms_heads(t), t.zero = 3, t.precision = Precision::kBf16Mixed; }},
    {"pp2_tp2_qwen3_sp_zero_bubble",
     {1, 2, 2},
     [](Trial& t) { norms_heads(t), t.sp = true, zero_bubble(t); }},
    {"tp2_gemma3", {1, 2}, windows_by_layer},
    {"tp4_kv2_gemma3_sp_full",
     {1, 4},
     [](Trial& t) { windows_by_layer(t), grouped_query(t), t.sp = true, t.recompute = Recompute::kFull; }},
    {"dp2_tp2_gemma3_sp_zero2", {2, 2}, [](Trial& t) { windows_by_layer(t), t.sp = true, t.zero = 2; }},
    {"dp2_pp2_gemma3_zero3_mixed",
     {2, 1, 2},
     [](Trial& t) { windows_by_layer(t), t.zero = 3, t.precision = Precision::kBf16Mixed; }},
    {"cp2_gemma3_exchange",
     {1, 1, 1, 2},
     [](Trial& t) { windows_by_layer(t), t.cp_comm_type = CpCommType::kAllToAll; }},
    {"pp2_tp2_gemma3_sp_zero_bubble",
     {1, 2, 2},
     [](Trial& t) { windows_by_layer(t), t.sp = true, zero_bubble(t); }},
    {"dp2_gemma3_packed", {2}, [](Trial& t) { windows_by_layer(t), packed(t); }},
    {"tp2_gpt_oss", {1, 2}, with_sinks},
    {"dp2_tp2_ep2_gpt_oss_zero1", {2, 2, 1, 1, 2}, [](Trial& t) { with_sinks(t), t.sp = true, t.zero = 1; }},
    {"dp2_ep2_gpt_oss_zero3_mixed",
     {2, 1, 1, 1, 2},
     [](Trial& t) { with_sinks(t), t.zero = 3, t.precision = Precision::kBf16Mixed; }},
    {"pp2_gpt_oss_zero_bubble", {1, 1, 2}, [](Trial& t) { with_sinks(t), zero_bubble(t); }},
    {"cp2_gpt_oss_exchange",
     {1, 1, 1, 2},
     [](Trial& t) { with_sinks(t), t.cp_comm_type = CpCommType::kAllToAll; }},
    {"tp2_deepseek", {1, 2}, deepseek},
    {"tp2_deepseek_full_sp",
     {1, 2},
     [](Trial& t) { deepseek(t), t.sp = true, t.recompute = Recompute::kFull; }},
    {"tp4_deepseek_v3", {1, 4}, deepseek_v3},
    {"tp2_deepseek_v3_sp_selective",
     {1, 2},
     [](Trial& t) { deepseek_v3(t), t.sp = true, t.recompute = Recompute::kSelective; }},
    {"dp2_tp2_ep2_deepseek_v3_zero3", {2, 2, 1, 1, 2}, [](Trial& t) { deepseek_v3(t), t.zero = 3; }},
    {"dp2_ep2_deepseek_zero1_bf16",
     {2, 1, 1, 1, 2},
     [](Trial& t) { deepseek(t), t.zero = 1, t.precision = Precision::kBf16; }},
    {"dp2_pp2_deepseek_zero2", {2, 1, 2}, [](Trial& t) { deepseek(t), t.zero = 2; }},
    {"pp2_tp2_deepseek_interleaved", {1, 2, 2}, [](Trial& t) { deepseek(t), interleaved(t); }},
    {"pp2_deepseek_zero_bubble", {1, 1, 2}, [](Trial& t) { deepseek(t), zero_bubble(t); }},
    {"pp2_tp2_deepseek_v3_sp_zero_bubble",
     {1, 2, 2},
     [](Trial& t) { deepseek_v3(t), t.sp = true, zero_bubble(t); }},
    {"cp2_deepseek", {1, 1, 1, 2}, deepseek},
    {"cp2_deepseek_v3_exchange",
     {1, 1, 1, 2},
     [](Trial& t) { deepseek_v3(t), t.cp_comm_type = CpCommType::kAllToAll; }},
    {"dp2_deepseek_packed", {2}, [](Trial& t) { deepseek(t), packed(t); }},
    {"tp4_sp", {1, 4}, [](Trial& t) { t.sp = true; }},
    {"tp2_kv1", {1, 2}, multi_query},
    {"tp4_kv2", {1, 4}, grouped_query},
    {"tp4_kv1_sp", {1, 4}, [](Trial& t) { multi_query(t), t.sp = true; }},
    {"tp4_kv2_full", {1, 4}, [](Trial& t) { grouped_query(t), t.recompute = Recompute::kFull; }},
    {"tp4_kv2_selective", {1, 4}, [](Trial& t) { grouped_query(t), t.recompute = Recompute::kSelective; }},
    {"tp4_kv2_bf16_clip",
     {1, 4},
     [](Trial& t) { grouped_query(t), t.precision = Precision::kBf16, t.grad_clip = true; }},
    {"dp2_tp4_kv2_zero2", {2, 4}, [](Trial& t) { grouped_query(t), t.zero = 2; }},
    {"dp2_tp4_kv2_sp_zero3", {2, 4}, [](Trial& t) { grouped_query(t), t.sp = true, t.zero = 3; }},
    {"pp2_tp4_kv2_tied", {1, 4, 2}, [](Trial& t) { tied(t), grouped_query(t); }},
    {"pp2_tp2_kv1_zero_bubble", {1, 2, 2}, [](Trial& t) { multi_query(t), zero_bubble(t); }},
    {"tp4_kv2_cp2_sp", {1, 4, 1, 2}, [](Trial& t) { grouped_query(t), t.sp = true; }},
    {"dp2_tp2_kv1_ep2", {2, 2, 1, 1, 2}, [](Trial& t) { experts(t), multi_query(t); }},
    {"dp2_tp2_sp_zero1", {2, 2}, [](Trial& t) { t.sp = true, t.zero = 1; }},
    {"dp2_tp2_sp_zero3", {2, 2}, [](Trial& t) { t.sp = true, t.zero = 3; }},
    {"dp2_tp2_sp_zero3_mixed",
     {2, 2},
     [](Trial& t) { t.sp = true, t.zero = 3, t.precision = Precision::kBf16Mixed; }},
    {"dp2_tp2_fp16_zero2", {2, 2}, [](Trial& t) { t.zero = 2, t.precision = Precision::kFp16; }},
    {"tp2_padded", {1, 2}, padded},
    {"tp4_padded_sp_clip", {1, 4}, [](Trial& t) { padded(t), t.sp = t.grad_clip = true; }},
    {"padded_alone", {1}, padded},
    {"dp2_tp2_padded_zero1", {2, 2}, [](Trial& t) { padded(t), t.zero = 1; }},
    {"dp2_tp2_padded_zero2_bf16",
     {2, 2},
     [](Trial& t) { padded(t), t.zero = 2, t.precision = Precision::kBf16; }},
    {"dp2_tp2_padded_zero3", {2, 2}, [](Trial& t) { padded(t), t.zero = 3; }},
    {"dp2_tp2_padded_zero3_mixed_sp",
     {2, 2},
     [](Trial& t) { padded(t), t.zero = 3, t.sp = true, t.precision = Precision::kBf16Mixed; }},
    {"pp2_tp2_padded_tied", {1, 2, 2}, [](Trial& t) { tied(t), padded(t); }},
    {"dp2_pp2_tp2_padded_tied_master",
     {2, 2, 2},
     [](Trial& t) { tied(t), padded(t), t.precision = Precision::kBf16Master; }},
    {"pp2_tp2_padded_zero_bubble", {1, 2, 2}, [](Trial& t) { padded(t), zero_bubble(t); }},
    {"tp2_cp2_padded", {1, 2, 1, 2}, padded},
    {"pp2_tp2", {1, 2, 2}, nothing},
    {"pp2_tp2_sp_interleaved", {1, 2, 2}, [](Trial& t) { t.sp = true, interleaved(t); }},
    {"pp2_interleaved_full", {1, 1, 2}, [](Trial& t) { interleaved(t), t.recompute = Recompute::kFull; }},
    {"pp4_tied", {1, 1, 4}, tied},
    {"pp2_tp2_tied", {1, 2, 2}, tied},
    {"dp2_pp2_tied_zero1", {2, 1, 2}, [](Trial& t) { tied(t), t.zero = 1; }},
    {"dp2_pp2_zero3", {2, 1, 2}, [](Trial& t) { t.zero = 3; }},
    {"dp2_pp2_tied_uneven_zero1", {2, 1, 2}, [](Trial& t) { tied(t), t.zero = 1, t.spec.vocab_size = 57; }},
    {"dp2_pp2_zero3_kept", {2, 1, 2}, kept},
    {"dp2_pp2_gpipe_zero3_kept", {2, 1, 2}, [](Trial& t) { kept(t), t.schedule = Schedule::kGpipe; }},
    {"dp2_pp2_interleaved_zero3_kept", {2, 1, 2}, [](Trial& t) { kept(t), interleaved(t); }},
    {"dp2_pp2_zero_bubble_zero3_kept", {2, 1, 2}, [](Trial& t) { kept(t), zero_bubble(t); }},
    {"dp2_pp2_ep2_zero3_kept", {2, 1, 2, 1, 2}, [](Trial& t) { kept(t), experts(t); }},
    {"dp2_pp2_interleaved_zero3_full",
     {2, 1, 2},
     [](Trial& t) { interleaved(t), t.zero = 3, t.recompute = Recompute::kFull; }},
    {"pp2_zero_bubble", {1, 1, 2}, zero_bubble},
    {"pp4_zero_bubble_tied", {1, 1, 4}, [](Trial& t) { tied(t), zero_bubble(t); }},
    {"pp2_tp2_sp_zero_bubble", {1, 2, 2}, [](Trial& t) { zero_bubble(t), t.sp = true; }},
    {"pp2_cp2_zero_bubble", {1, 1, 2, 2}, zero_bubble},
    {"dp2_pp2_zero_bubble_zero1", {2, 1, 2}, [](Trial& t) { zero_bubble(t), t.zero = 1; }},
    {"dp2_pp2_zero_bubble_zero2", {2, 1, 2}, [](Trial& t) { zero_bubble(t), t.zero = 2; }},
    {"dp2_pp2_zero_bubble_zero3", {2, 1, 2}, [](Trial& t) { zero_bubble(t), t.zero = 3; }},
    {"dp2_pp2_ep2_zero_bubble", {2, 1, 2, 1, 2}, [](Trial& t) { experts(t), zero_bubble(t); }},
    {"cp2_full", {1, 1, 1, 2}, [](Trial& t) { t.recompute = Recompute::kFull; }},
    {"cp2_selective", {1, 1, 1, 2}, [](Trial& t) { t.recompute = Recompute::kSelective; }},
    {"cp2_exchange_full",
     {1, 1, 1, 2},
     [](Trial& t) { t.cp_comm_type = CpCommType::kAllToAll, t.recompute = Recompute::kFull; }},
    {"cp2_exchange_selective",
     {1, 1, 1, 2},
     [](Trial& t) { t.cp_comm_type = CpCommType::kAllToAll, t.recompute = Recompute::kSelective; }},
    {"cp2_zero3", {1, 1, 1, 2}, [](Trial& t) { t.zero = 3; }},
    {"pp2_cp2", {1, 1, 2, 2}, nothing},
    {"tp2_cp2_sp_full", {1, 2, 1, 2}, [](Trial& t) { t.sp = true, t.recompute = Recompute::kFull; }},
    {"dp2_tp2_cp2_sp_zero3", {2, 2, 1, 2}, [](Trial& t) { t.sp = true, t.zero = 3; }},
    {"dp2_experts", {2}, [](Trial& t) { experts(t), t.spec.router_aux_coef = 0.01; }},
    {"ep2", {2, 1, 1, 1, 2}, experts},
    {"ep2_full",
     {2, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.recompute = Recompute::kFull, t.spec.router_aux_coef = 0.01; }},
    {"ep2_learned",
     {2, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.routing = Routing::kLearned, t.spec.router_aux_coef = 0.01; }},
    {"ep2_skewed", {2, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.routing = Routing::kSkewed; }},
    {"ep2_capacity",
     {2, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.routing = Routing::kSkewed, t.capacity_percent = 100; }},
    {"ep2_half_capacity", {2, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.capacity_percent = 50; }},
    {"cp2_ep2_little_capacity", {1, 1, 1, 2, 2}, [](Trial& t) { experts(t), t.capacity_percent = 30; }},
    {"dp4_ep2_zero1", {4, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.zero = 1; }},
    {"dp4_ep2_zero2", {4, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.zero = 2; }},
    {"dp4_ep4_zero3", {4, 1, 1, 1, 4}, [](Trial& t) { experts(t), t.zero = 3; }},
    {"dp2_tp2_ep2", {2, 2, 1, 1, 2}, [](Trial& t) { experts(t), t.recompute = Recompute::kFull; }},
    {"dp2_tp2_ep2_sp", {2, 2, 1, 1, 2}, [](Trial& t) { experts(t), t.sp = true; }},
    {"cp2_ep2", {1, 1, 1, 2, 2}, experts},
    {"pp2_cp2_ep2", {1, 1, 2, 2, 2}, experts},
    {"dp2_tp2_pp2_ep2_sp_full_zero1",
     {2, 2, 2, 1, 2},
     [](Trial& t) { experts(t), interleaved(t), t.sp = true, t.recompute = Recompute::kFull, t.zero = 1; }},
    {"packed", {1}, packed},
    {"packed_math", {1}, [](Trial& t) { packed(t), t.attention = AttentionKind::kMath; }},
    {"packed_tp2_sp_selective",
     {1, 2},
     [](Trial& t) { packed(t), t.sp = true, t.recompute = Recompute::kSelective; }},
    {"packed_pp2_zero_bubble", {1, 1, 2}, [](Trial& t) { packed(t), zero_bubble(t); }},
    {"packed_pp2_tp2_interleaved", {1, 2, 2}, [](Trial& t) { packed(t), interleaved(t); }},
    {"packed_dp2_zero3_full", {2}, [](Trial& t) { packed(t), t.zero = 3, t.recompute = Recompute::kFull; }},
    {"packed_dp2_tp2_lora_offloaded",
     {2, 2},
     [](Trial& t) { packed(t), lora(t), t.zero = 1, t.activation_offload = true; }},
    {"packed_dp2_ep2", {2, 1, 1, 1, 2}, [](Trial& t) { packed(t), experts(t); }},
    {"documents_padded_tp2_cp2", {1, 2, 1, 2}, [](Trial& t) { t.lengths = "uniform 2 16"; }},
    {"dp2_offloaded",
     {2},
     [](Trial& t) { t.zero = 2, t.offload = Offload::kOptimizer, t.activation_offload = true; }},
};

Trial trial_of(const CostCase& c) {
  Trial t = tiny_trial();
  c.change(t);
  const Degrees& d = c.degrees;
  return with_degrees(t, d.dp, d.tp, d.pp, d.cp, d.ep);
}

// The peak of two steps over what was there before; the channels count the second.
i64 peak_of(const Trial& t, at::Device device, parallel::Mesh& mesh,
            const std::function<void(const step::TrainStep&)>& then) {
  memory::install(device.type());
  const i64 before = memory::stats(device.type()).current;
  memory::reset_peak(device.type());
  step::TrainStep step(t, device, mesh, nullptr);
  step.run();
  mesh.reset_traffic();
  step.run();
  const i64 peak = memory::stats(device.type()).peak - before;
  then(step);
  return peak;
}

class ProductCosts : public ::testing::TestWithParam<CostCase> {};

TEST_P(ProductCosts, SendWhatTheFormulasSayAndPeakWhereTheDryRunSays) {
  const Trial t = trial_of(GetParam());
  ASSERT_EQ(step::unsupported(t, c10::DeviceType::CPU), std::nullopt);
  const OneCore core;
  const auto statuses = run_ranks(static_cast<int>(t.world()), [&](const comm::GroupOptions& options) {
    const auto dims = *shape::ParallelDims::make(t);
    parallel::Mesh pretended = parallel::pretend(dims, options.rank);
    const i64 dry = peak_of(t, at::kMeta, pretended, [](const step::TrainStep&) {});
    parallel::Mesh mesh(dims, options.rank, [&](const parallel::Mesh::Meeting& met) {
      comm::GroupOptions group = options;
      group.name = met.name, group.rank = met.rank, group.world = met.size();
      return comm::make_backend(t.backend, group);
    });
    const i64 real = peak_of(t, at::kCPU, mesh, [&](const step::TrainStep& step) {
      for (const std::string& fault : step::traffic_faults(t, mesh, step)) require(false, fault);
    });
    // A dry run foresees the rows of forced routings; of a learned one it takes an even choice.
    if (t.routing != Routing::kLearned)
      require(real == dry, "rank " + std::to_string(options.rank) + ": the peak is " + std::to_string(real) +
                               " bytes, the dry run's " + std::to_string(dry));
    mesh[Dimension::kWorld].barrier();
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

TEST(TrafficCheck, TellsAStepTooMany) {
  Trial t = tiny_trial();
  grouped_query(t), t.sp = true, t.zero = 1;
  t = with_degrees(t, 2, 4, 1, 1);
  parallel::Mesh mesh = parallel::pretend(*shape::ParallelDims::make(t), 0);
  step::TrainStep step(t, at::kCPU, mesh, nullptr);
  step.run();
  mesh.reset_traffic();
  step.run();
  EXPECT_EQ(step::traffic_faults(t, mesh, step), std::vector<std::string>{});
  step.run();
  const auto faults = step::traffic_faults(t, mesh, step);
  for (const char* what :
       {"tp all_gather calls", "kv all_gather bytes", "kv reduce_scatter calls", "dp all_gather bytes"})
    EXPECT_THAT(faults, ::testing::Contains(::testing::HasSubstr(what)));
}

INSTANTIATE_TEST_SUITE_P(Products, ProductCosts, ::testing::ValuesIn(kCosts),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Adapters, ProductCosts, ::testing::ValuesIn(adapter_costs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sweep::testing
