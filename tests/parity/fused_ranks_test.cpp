// Every strategy by the fused kernels of a device, which each rank runs by the CPU shim, beside library operators: on as many
// ranks, and on one. The same loss, gradients and parameters.
#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/cost_cases.h"
#include "tests/parity/parity_table.h"
#include "tests/support/host_launcher.h"

namespace sweep::testing {
namespace {

constexpr int kFusedSteps = 2;

Trial fused_trial(const CostCase& c) {
  Trial t = tiny_trial();
  t.spec.layers = 2, t.global_batch_size = 4;
  c.change(t);
  const Degrees& d = c.degrees;
  return with_degrees(t, d.dp, d.tp, d.pp, d.cp, d.ep);
}

void gpt2_like(Trial& t) {
  t.spec.family = "gpt2", t.spec.max_positions = 24, t.spec.tie_embeddings = true;
  t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
}
void learned_experts(Trial& t) {
  experts(t), t.routing = Routing::kLearned, t.spec.router_aux_coef = 0.02;
}
// Rows that an expert refuses; at 100 percent the second rank of two gets none.
void hot_experts(Trial& t, i64 percent, i64 capacity) {
  experts(t), t.routing = Routing::kSkewed, t.hot_percent = percent, t.capacity_percent = capacity;
}

const CostCase kFusedCases[] = {
    {"dp 2, zero 1", {2}, [](Trial& t) { t.zero = 1; }},
    {"dp 2, zero 2, clip", {2}, [](Trial& t) { t.zero = 2, t.grad_clip = true; }},
    {"dp 2, zero 3, recompute full", {2}, [](Trial& t) { t.zero = 3, t.recompute = Recompute::kFull; }},
    {"dp 4, zero 3 in shard sets of 2", {4}, [](Trial& t) { t.zero = 3, t.dp_shard = 2; }},
    {"dp 2, zero 1, 8-bit AdamW", {2}, [](Trial& t) { t.zero = 1, t.optimizer = OptimizerKind::kAdamw8bit; }},
    {"tp 2", {1, 2}, grouped_query},
    {"tp 4, kv 2, padded vocabulary", {1, 4}, [](Trial& t) { grouped_query(t), padded(t); }},
    {"tp 2 + sp", {1, 2}, [](Trial& t) { t.sp = true; }},
    {"tp 2 + sp + overlap, gpt2", {1, 2}, [](Trial& t) { gpt2_like(t), t.sp = t.tp_overlap = true; }},
    {"tp 2, gpt2", {1, 2}, gpt2_like},
    {"tp 2, gemma3", {1, 2}, windows_by_layer},
    {"tp 2, gpt_oss", {1, 2}, with_sinks},
    {"tp 2 + sp, deepseek_v3", {1, 2}, [](Trial& t) { deepseek_v3(t), t.sp = true; }},
    {"cp 2", {1, 1, 1, 2}, grouped_query},
    {"cp 2 all-to-all", {1, 1, 1, 2}, [](Trial& t) { t.cp_comm_type = CpCommType::kAllToAll; }},
    {"pp 2", {1, 1, 2}, nothing},
    {"pp 2 x 2 chunks, tied", {1, 1, 2}, [](Trial& t) { t.spec.layers = 4, tied(t), interleaved(t); }},
    {"pp 2 zero_bubble", {1, 1, 2}, zero_bubble},
    {"ep 2, learned", {2, 1, 1, 1, 2}, learned_experts},
    {"ep 2 in shard sets of 2, zero 2",
     {4, 1, 1, 1, 2},
     [](Trial& t) { learned_experts(t), t.zero = 2, t.dp_shard = 2; }},
    {"ep 2, hot experts with a capacity", {2, 1, 1, 1, 2}, [](Trial& t) { hot_experts(t, 70, 100); }},
    {"ep 2, a rank without rows",
     {2, 1, 1, 1, 2},
     [](Trial& t) { hot_experts(t, 100, 0), t.spec.experts_per_token = 1; }},
    {"ep 2 x tp 2 + sp, zero 3", {2, 2, 1, 1, 2}, [](Trial& t) { experts(t), t.sp = true, t.zero = 3; }},
    {"tp 2 x cp 2 x pp 2 + sp", {1, 2, 2, 2}, [](Trial& t) { t.sp = true; }},
    {"lora, tp 2", {1, 2}, lora},
    {"quantized base, tp 2 + sp", {1, 2}, [](Trial& t) { quantized(t), t.sp = true; }},
    {"quantized base, dp 2, zero 3", {2}, [](Trial& t) { quantized(t), t.zero = 3; }},
};

// Some kernels of the trial's step; vocabulary-parallel losses are not added up by one.
std::vector<std::string> some_kernels(const Trial& t) {
  std::vector<std::string> names{"sum_parts", "cross_entropy",
                                 t.spec.rmsnorm ? "rms_norm_backward" : "layer_norm_backward"};
  if (t.tp == 1) names.emplace_back("add_losses");
  if (t.spec.rope) names.emplace_back("rope");
  if (t.spec.experts > 0) names.insert(names.end(), {"router_backward", "combine_backward"});
  if (t.quantize_base != QuantizeBase::kNone) names.emplace_back("four_bit_weights");
  names.emplace_back(t.optimizer == OptimizerKind::kAdamw8bit ? "adamw_eight_bit"
                     : t.precision == Precision::kBf16Master  ? "adamw_master"
                                                              : "adamw");
  return names;
}

WholeRun run_fused(const std::string& name, const Trial& trial) {
  const HostKernels host;
  WholeRun run = run_layout(trial, kFusedSteps);
  EXPECT_EQ(run.faults, std::vector<std::string>{}) << name;
  const auto launches = host.launches();
  for (const std::string& kernel : some_kernels(trial))
    EXPECT_TRUE(launches.contains(kernel)) << name << ": " << kernel;
  EXPECT_EQ(launches.contains("add_losses"), trial.tp == 1) << name;
  return run;
}

class FusedRanks : public ::testing::Test {
 protected:
  void SetUp() override { kernels::set_path(kernels::Path::kPlain); }
  void TearDown() override { kernels::set_path(kernels::Path::kFused); }

  // The run of a layout, which both tables of distances are taken from.
  static const WholeRun& fused_run(const CostCase& c, const Trial& trial) {
    static std::map<std::string, WholeRun> runs;
    const auto [run, is_new] = runs.try_emplace(c.name);
    if (is_new) run->second = run_fused(c.name, trial);
    return run->second;
  }
};

// The load balance of a rank's own tokens, and what a capacity drops, are other numbers on one rank.
bool depends_on_ranks(const Trial& t) {
  return t.capacity_percent > 0 || (t.spec.router_aux_coef > 0 && t.dp > 1);
}

// A norm's or bias' gradient is a sum over tokens that cancels: another order of it differs by 1e-5 of its norm.
TEST_F(FusedRanks, HaveTheLossAndTheGradientsOfLibraryOperators) {
  const ParityTable heading(kFusedSteps);
  for (const CostCase& c : kFusedCases) {
    const Trial trial = fused_trial(c);
    const Distance d = ParityTable::row(c.name, fused_run(c, trial), run_layout(trial, kFusedSteps));
    EXPECT_LT(d.loss, 1e-6) << c.name;
    EXPECT_LT(d.gradient, 2e-5) << c.name << ": " << d.worst;
    EXPECT_LT(d.value, 1e-5) << c.name;
  }
}

TEST_F(FusedRanks, HaveTheLossAndTheGradientsOfOneRank) {
  ParityTable table(kFusedSteps);
  for (const CostCase& c : kFusedCases) {
    const Trial trial = fused_trial(c);
    if (depends_on_ranks(trial)) continue;
    const WholeRun& fused = fused_run(c, trial);
    const HostKernels host;
    const Distance d = ParityTable::row(c.name, fused, table.alone(trial));
    EXPECT_LT(d.loss, 1e-6) << c.name;
    EXPECT_LT(d.gradient, 5e-6) << c.name << ": " << d.worst;
    // Shards have other blocks of eight bits than whole tensors.
    EXPECT_LT(d.value, trial.optimizer == OptimizerKind::kAdamw8bit ? 1e-2 : 5e-6) << c.name;
  }
}

// A fused kernel rounds to 16 bits once where library operators do after each: it is no farther from fp32 than they are, but
// for chance. A wrong index would be farther by a hundred times.
TEST_F(FusedRanks, RoundNoMoreThanLibraryOperatorsIn16Bits) {
  const CostCase cases[] = {
      {"bf16, tp 2", {1, 2}, [](Trial& t) { t.precision = Precision::kBf16; }},
      {"bf16, tp 2 + sp, deepseek_v3",
       {1, 2},
       [](Trial& t) { deepseek_v3(t), t.sp = true, t.precision = Precision::kBf16; }},
      {"bf16_master, ep 2, zero 2",
       {2, 1, 1, 1, 2},
       [](Trial& t) { experts(t), t.zero = 2, t.precision = Precision::kBf16Master; }},
      {"bf16_mixed, dp 2, zero 3, gpt2",
       {2},
       [](Trial& t) { gpt2_like(t), t.zero = 3, t.precision = Precision::kBf16Mixed; }},
  };
  ParityTable table(kFusedSteps);
  for (const CostCase& c : cases) {
    const Trial trial = fused_trial(c);
    Trial exact_trial = trial;
    exact_trial.precision = Precision::kFp32;
    const WholeRun exact = run_layout(exact_trial, kFusedSteps);
    const Distance fused = ParityTable::row(c.name, run_fused(c.name, trial), exact);
    const Distance plain = ParityTable::row("  library operators", run_layout(trial, kFusedSteps), exact);
    EXPECT_LT(fused.loss, 1.0 / 512) << c.name << ": half a step of bf16";
    EXPECT_LT(fused.gradient, 1.5 * plain.gradient) << c.name << ": " << fused.worst;
    EXPECT_LT(fused.value, 1.5 * plain.value) << c.name;
  }
}

}  // namespace
}  // namespace sweep::testing
