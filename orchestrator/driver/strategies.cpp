#include "orchestrator/driver/strategies.h"

#include <fmt/format.h>

#include <algorithm>

namespace sweep::driver {
namespace {

constexpr std::string_view kNever = "";
constexpr std::array<std::string_view, kBackends> kCpuOnly = {"2026-11-21", "2026-11-21", kNever, kNever};
constexpr std::array<std::string_view, kBackends> kCpuSince22 = {"2026-11-22", "2026-11-22", kNever, kNever};
constexpr std::array<std::string_view, kBackends> kCpuSince27 = {"2026-11-27", "2026-11-27", kNever, kNever};
constexpr std::array<std::string_view, kBackends> kCpuSince24 = {"2026-11-24", "2026-11-24", kNever, kNever};
constexpr std::array<std::string_view, kBackends> kCpuSince29 = {"2026-11-29", "2026-11-29", kNever, kNever};

constexpr Strategy kStrategies[] = {
    {"one_rank", "one rank", kCpuSince24},
    {"one_rank_bf16", "one rank in bf16", kCpuSince24},
    {"dp", "data parallel", kCpuOnly},
    {"zero1", "ZeRO 1", kCpuOnly},
    {"zero2", "ZeRO 2", kCpuOnly},
    {"zero3", "ZeRO 3", kCpuOnly},
    {"hybrid", "ZeRO 3, hybrid sharding", kCpuOnly},
    {"tp", "tensor", kCpuOnly},
    {"tp_sp", "tensor and sequence", kCpuOnly},
    {"tp_overlap", "tensor and sequence, overlapped", kCpuOnly},
    {"tp_kv", "tensor, TP > KV heads", kCpuSince22},
    {"pp_gpipe", "pipeline: gpipe", kCpuOnly},
    {"pp_1f1b", "pipeline: 1f1b", kCpuOnly},
    {"pp_interleaved", "pipeline: interleaved", kCpuOnly},
    {"pp_zero_bubble", "pipeline: zero_bubble", kCpuSince22},
    {"cp_ring", "context: ring", kCpuOnly},
    {"cp_heads", "context: Ulysses (all-to-all)", kCpuOnly},
    {"ep_balanced", "experts: balanced", kCpuOnly},
    {"ep_learned", "experts: learned", kCpuOnly},
    {"ep_skewed", "experts: skewed", kCpuOnly},
    {"hybrid_experts", "experts, hybrid sharding", kCpuSince29},
    {"recompute", "recomputation", kCpuOnly},
    {"offload", "offloaded optimizer and activations", kCpuOnly},
    {"bf16_mixed", "bf16, fp32 states", kCpuOnly},
    {"bf16_master", "bf16, fp32 master", kCpuOnly},
    {"bf16_amp", "bf16 by autocast", kCpuSince27},
};

Trial tiny(const SelfTestSetup& setup) {
  Trial t;
  t.model = "tiny", t.workload = Workload::kProof;
  t.spec.layers = 4, t.spec.hidden_size = 32, t.spec.heads = 4, t.spec.kv_heads = 4, t.spec.head_dim = 8;
  t.spec.intermediate_size = 48, t.spec.vocab_size = 64;
  t.seq_len = 16, t.global_batch_size = 8;
  t.hardware = setup.hardware, t.backend = setup.backend, t.nodes = setup.nodes;
  return t;
}

void with_experts(Trial& t, i64 degree, Routing routing) {
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
  t.dp = t.ep = degree, t.routing = routing;
}

// Sets what the strategy is; `n` ranks take part where it divides one thing.
void apply(std::string_view name, i64 n, Trial& t) {
  if (name == "one_rank_bf16") t.precision = Precision::kBf16;
  if (name == "zero1") t.dp = n, t.zero = 1;
  if (name == "zero2") t.dp = n, t.zero = 2;
  if (name == "zero3") t.dp = n, t.zero = 3;
  if (name == "hybrid_experts") with_experts(t, 2, Routing::kBalanced);
  if (name.starts_with("hybrid")) t.dp = 4, t.zero = 3, t.dp_shard = 2;
  if (name.starts_with("tp"))
    t.tp = n, t.sp = name == "tp_sp" || name == "tp_overlap", t.tp_overlap = name == "tp_overlap";
  if (name == "tp_kv") t.spec.kv_heads = 1;
  if (name.starts_with("pp")) t.pp = n, t.schedule = *choice_from<Schedule>(name.substr(3));
  if (name == "pp_interleaved") t.vpp = 2, t.spec.layers = 2 * n;
  if (name == "cp_ring") t.cp = n;
  if (name == "cp_heads") t.cp = n, t.cp_comm_type = CpCommType::kAllToAll;
  if (name.starts_with("ep_")) with_experts(t, n, *choice_from<Routing>(name.substr(3)));
  if (name == "recompute") t.dp = n, t.recompute = Recompute::kFull;
  if (name == "offload") t.dp = n, t.offload = Offload::kOptimizer, t.activation_offload = true;
  if (name.starts_with("bf16")) t.dp = n, t.precision = *choice_from<Precision>(name);
  if (name == "dp") t.dp = n;
}

}  // namespace

std::span<const Strategy> all_strategies() {
  return kStrategies;
}

Backend backend_of(const Trial& t) {
  if (t.hardware == "cpu")
    return t.backend == CommBackend::kGloo || t.nodes > 1 ? Backend::kGloo : Backend::kShm;
  if (t.backend == CommBackend::kGloo) return Backend::kGloo;
  return t.nodes > 1 ? Backend::kNcclNodes : Backend::kNcclNode;
}

Tolerance tolerance_of(const Trial& t) {
  if (t.precision == Precision::kBf16Mixed || t.precision == Precision::kBf16Amp) return {1e-3, 4e-2, 2e-3};
  if (t.precision == Precision::kBf16Master) return {1e-3, 4e-2, 5e-3};
  if (t.precision == Precision::kBf16) return {1e-3, 4e-2, 1e-2};
  // Other shards have other blocks, whose moments are rounded otherwise from the second update on.
  if (t.optimizer == OptimizerKind::kAdamw8bit) return {1e-4, 1e-2, 3e-3};
  if (t.hardware != "cpu") return {1e-4, 1e-4, 1e-4};  // another device's library sums in another order
  return {};
}

std::vector<SelfTestTrial> selftest_trials(const SelfTestSetup& setup) {
  std::vector<SelfTestTrial> all;
  const i64 n = std::max<i64>(2, setup.nodes);
  for (const Strategy& strategy : kStrategies) {
    SelfTestTrial selftest{std::string(strategy.name), tiny(setup), ""};
    Trial& t = *selftest.trial;
    apply(strategy.name, n, t);
    // The flash kernel of the ring takes half precisions only on a GPU.
    if (strategy.name == "cp_ring" && t.hardware != "cpu") t.precision = Precision::kBf16;
    t.gpus_per_node = t.world() / setup.nodes;
    t.grad_accum = t.global_batch_size / t.dp;
    if (t.world() < setup.nodes)
      selftest.why = fmt::format("it has {} rank for {} nodes", t.world(), setup.nodes);
    else if (t.world() % setup.nodes != 0 || t.gpus_per_node > setup.ranks_per_node)
      selftest.why = fmt::format("it needs {} ranks on each of {} nodes; {} are offered", t.gpus_per_node,
                                 setup.nodes, setup.ranks_per_node);
    if (!selftest.why.empty()) selftest.trial.reset();
    all.push_back(std::move(selftest));
  }
  return all;
}

}  // namespace sweep::driver
