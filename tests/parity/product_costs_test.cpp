// What products of strategies cost each rank: the bytes and calls that it sends equal the closed forms of
// bench_kernels/shape, dimension by dimension, and the peak of its memory equals the dry run's to the byte.
#include <gtest/gtest.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/split_traffic.h"
#include "bench_kernels/shape/stage_split.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/layouts.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

using comm::Kind;
using shape::Dimension;

struct Degrees {
  i64 dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;
};
struct CostCase {
  const char* name;
  Degrees degrees;
  void (*change)(Trial&);
};

void experts(Trial& t) {
  t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
}
void tied(Trial& t) {
  t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true;
}
void interleaved(Trial& t) {
  t.schedule = "interleaved", t.vpp = 2;
}
void zero_bubble(Trial& t) {
  t.schedule = "zero_bubble";
}
void nothing(Trial&) {}

const CostCase kCosts[] = {
    {"zero1", {2}, [](Trial& t) { t.zero = 1; }},
    {"zero2", {2}, [](Trial& t) { t.zero = 2; }},
    {"zero3", {2}, [](Trial& t) { t.zero = 3; }},
    {"zero3_kept", {2}, [](Trial& t) { t.zero = 3, t.reshard = false; }},
    {"zero3_full", {2}, [](Trial& t) { t.zero = 3, t.recompute = "full"; }},
    {"zero3_hybrid_clip", {4}, [](Trial& t) { t.zero = 3, t.dp_shard = 2, t.clip = true; }},
    {"tp2", {1, 2}, nothing},
    {"tp2_full", {1, 2}, [](Trial& t) { t.recompute = "full"; }},
    {"tp2_full_every2", {1, 2}, [](Trial& t) { t.recompute = "full", t.recompute_every = 2; }},
    {"tp2_selective", {1, 2}, [](Trial& t) { t.recompute = "selective"; }},
    {"tp2_sp_full", {1, 2}, [](Trial& t) { t.sp = true, t.recompute = "full"; }},
    {"tp4_sp", {1, 4}, [](Trial& t) { t.sp = true; }},
    {"dp2_tp2_sp_zero1", {2, 2}, [](Trial& t) { t.sp = true, t.zero = 1; }},
    {"dp2_tp2_sp_zero3", {2, 2}, [](Trial& t) { t.sp = true, t.zero = 3; }},
    {"dp2_tp2_sp_zero3_mixed", {2, 2}, [](Trial& t) { t.sp = true, t.zero = 3, t.precision = "bf16_mixed"; }},
    {"dp2_tp2_fp16_zero2", {2, 2}, [](Trial& t) { t.zero = 2, t.precision = "fp16"; }},
    {"pp2_tp2", {1, 2, 2}, nothing},
    {"pp2_tp2_sp_interleaved", {1, 2, 2}, [](Trial& t) { t.sp = true, interleaved(t); }},
    {"pp2_interleaved_full", {1, 1, 2}, [](Trial& t) { interleaved(t), t.recompute = "full"; }},
    {"pp4_tied", {1, 1, 4}, tied},
    {"pp2_tp2_tied", {1, 2, 2}, tied},
    {"dp2_pp2_tied_zero1", {2, 1, 2}, [](Trial& t) { tied(t), t.zero = 1; }},
    {"dp2_pp2_zero3", {2, 1, 2}, [](Trial& t) { t.zero = 3; }},
    {"dp2_pp2_interleaved_zero3_full",
     {2, 1, 2},
     [](Trial& t) { interleaved(t), t.zero = 3, t.recompute = "full"; }},
    {"pp2_zero_bubble", {1, 1, 2}, zero_bubble},
    {"pp4_zero_bubble_tied", {1, 1, 4}, [](Trial& t) { tied(t), zero_bubble(t); }},
    {"pp2_tp2_sp_zero_bubble", {1, 2, 2}, [](Trial& t) { zero_bubble(t), t.sp = true; }},
    {"pp2_cp2_zero_bubble", {1, 1, 2, 2}, zero_bubble},
    {"dp2_pp2_zero_bubble_zero1", {2, 1, 2}, [](Trial& t) { zero_bubble(t), t.zero = 1; }},
    {"dp2_pp2_zero_bubble_zero2", {2, 1, 2}, [](Trial& t) { zero_bubble(t), t.zero = 2; }},
    {"dp2_pp2_zero_bubble_zero3", {2, 1, 2}, [](Trial& t) { zero_bubble(t), t.zero = 3; }},
    {"dp2_pp2_ep2_zero_bubble", {2, 1, 2, 1, 2}, [](Trial& t) { experts(t), zero_bubble(t); }},
    {"cp2_full", {1, 1, 1, 2}, [](Trial& t) { t.recompute = "full"; }},
    {"cp2_selective", {1, 1, 1, 2}, [](Trial& t) { t.recompute = "selective"; }},
    {"cp2_exchange_full", {1, 1, 1, 2}, [](Trial& t) { t.cp_form = "all_to_all", t.recompute = "full"; }},
    {"cp2_exchange_selective",
     {1, 1, 1, 2},
     [](Trial& t) { t.cp_form = "all_to_all", t.recompute = "selective"; }},
    {"cp2_zero3", {1, 1, 1, 2}, [](Trial& t) { t.zero = 3; }},
    {"pp2_cp2", {1, 1, 2, 2}, nothing},
    {"tp2_cp2_sp_full", {1, 2, 1, 2}, [](Trial& t) { t.sp = true, t.recompute = "full"; }},
    {"dp2_tp2_cp2_sp_zero3", {2, 2, 1, 2}, [](Trial& t) { t.sp = true, t.zero = 3; }},
    {"dp2_experts", {2}, [](Trial& t) { experts(t), t.spec.router_aux_coef = 0.01; }},
    {"ep2", {2, 1, 1, 1, 2}, experts},
    {"ep2_full",
     {2, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.recompute = "full", t.spec.router_aux_coef = 0.01; }},
    {"ep2_learned",
     {2, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.routing = "learned", t.spec.router_aux_coef = 0.01; }},
    {"ep2_skewed", {2, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.routing = "skewed"; }},
    {"ep2_capacity",
     {2, 1, 1, 1, 2},
     [](Trial& t) { experts(t), t.routing = "skewed", t.capacity_percent = 100; }},
    {"dp4_ep2_zero1", {4, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.zero = 1; }},
    {"dp4_ep2_zero2", {4, 1, 1, 1, 2}, [](Trial& t) { experts(t), t.zero = 2; }},
    {"dp4_ep4_zero3", {4, 1, 1, 1, 4}, [](Trial& t) { experts(t), t.zero = 3; }},
    {"dp2_tp2_ep2", {2, 2, 1, 1, 2}, [](Trial& t) { experts(t), t.recompute = "full"; }},
    {"dp2_tp2_ep2_sp", {2, 2, 1, 1, 2}, [](Trial& t) { experts(t), t.sp = true; }},
    {"cp2_ep2", {1, 1, 1, 2, 2}, experts},
    {"pp2_cp2_ep2", {1, 1, 2, 2, 2}, experts},
    {"dp2_tp2_pp2_ep2_sp_full_zero1",
     {2, 2, 2, 1, 2},
     [](Trial& t) { experts(t), interleaved(t), t.sp = true, t.recompute = "full", t.zero = 1; }},
    {"dp2_offloaded",
     {2},
     [](Trial& t) { t.zero = 2, t.offload = "optimizer", t.activation_offload = true; }},
};

Trial trial_of(const CostCase& c) {
  Trial t = tiny_trial();
  c.change(t);
  const Degrees& d = c.degrees;
  return with_degrees(t, d.dp, d.tp, d.pp, d.cp, d.ep);
}

void equal(const std::string& what, i64 counted, i64 formula) {
  require(counted == formula,
          what + ": counted " + std::to_string(counted) + ", the formula says " + std::to_string(formula));
}

// Counted over some channels of the mesh.
shape::Volume counted(const parallel::Mesh& mesh, std::initializer_list<Dimension> dimensions, Kind kind) {
  shape::Volume sum;
  for (const Dimension d : dimensions)
    sum += {mesh[d].traffic().calls_of(kind), mesh[d].traffic().bytes_of(kind)};
  return sum;
}

void equal(const std::string& what, const shape::Volume& counted, const shape::Volume& formula) {
  equal(what + " calls", counted.calls, formula.calls);
  equal(what + " bytes", counted.bytes, formula.bytes);
}

void check_splits(const Trial& t, const parallel::Mesh& mesh, i64 stage) {
  const auto of = [&](Dimension d, Kind kind) { return counted(mesh, {d}, kind); };
  if (t.tp > 1) {
    const auto formula = shape::tensor_traffic(t, stage);
    equal("tp all-reduce", of(Dimension::kTensor, Kind::kAllReduce), formula.all_reduce);
    equal("tp all-gather", of(Dimension::kTensor, Kind::kAllGather), formula.all_gather);
    equal("tp reduce-scatter", of(Dimension::kTensor, Kind::kReduceScatter), formula.reduce_scatter);
  }
  if (t.cp > 1) {
    const auto formula = shape::context_traffic(t, stage);
    equal("cp send", of(Dimension::kContext, Kind::kSend), formula.send);
    equal("cp all-to-all", of(Dimension::kContext, Kind::kAllToAll), formula.all_to_all);
  }
  if (t.pp > 1) {
    const auto formula = shape::pipeline_traffic(t, stage);
    equal("pp send", of(Dimension::kPipeline, Kind::kSend), {formula.sends, formula.bytes});
    equal("pp ends", of(Dimension::kEnds, Kind::kAllReduce), shape::tied_traffic(t, stage));
  }
  if (t.ep == 1) return;
  const auto formula = shape::expert_traffic(t, stage);
  const shape::Volume exchanged = of(Dimension::kExpert, Kind::kAllToAll);
  equal("ep all-to-all calls", exchanged.calls, formula.all_to_all.calls);
  if (t.routing == "balanced") equal("ep all-to-all bytes", exchanged.bytes, formula.all_to_all.bytes);
  equal("ep counts", of(Dimension::kExpert, Kind::kAllGather), formula.counts);
}

// Gradients and parameters of all chunks, and the experts' load.
void check_states(const Trial& t, const parallel::Mesh& mesh, const step::TrainStep& step, i64 stage) {
  shape::StateTraffic formula;
  const auto add = [&](const shape::StateTraffic& more) {
    formula.all_reduce += more.all_reduce;
    formula.reduce_scatter += more.reduce_scatter;
    formula.all_gather += more.all_gather;
  };
  for (const parallel::ModelState* state : step.states()) {
    const i64 of_experts = state->expert_elements();
    add(shape::state_traffic(t, static_cast<double>(state->elements() - of_experts),
                             static_cast<double>(state->shared_elements())));
    add(shape::expert_state_traffic(t, static_cast<double>(of_experts)));
  }
  if (t.spec.experts > 0)
    formula.all_reduce += static_cast<double>(shape::expert_traffic(t, stage).load.bytes);
  const auto of = [&](Kind kind) {
    return counted(mesh, {Dimension::kData, Dimension::kShard, Dimension::kReplicate, Dimension::kExpertData},
                   kind)
        .bytes;
  };
  equal("dp all-reduce", of(Kind::kAllReduce), static_cast<i64>(formula.all_reduce));
  equal("dp reduce-scatter", of(Kind::kReduceScatter), static_cast<i64>(formula.reduce_scatter));
  equal("dp all-gather", of(Kind::kAllGather), static_cast<i64>(formula.all_gather));
  const bool agrees = t.clip || t.precision == "fp16";  // one float64 over the world
  equal("world", counted(mesh, {Dimension::kWorld}, Kind::kAllReduce),
        agrees ? shape::Volume{1, 2 * 8 * (t.world() - 1) / t.world()} : shape::Volume{});
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

void PrintTo(const CostCase& c, std::ostream* out) {
  *out << c.name;
}

class ProductCosts : public ::testing::TestWithParam<CostCase> {};

TEST_P(ProductCosts, SendWhatTheFormulasSayAndPeakWhereTheDryRunSays) {
  const Trial t = trial_of(GetParam());
  ASSERT_EQ(step::unsupported(t, c10::DeviceType::CPU), std::nullopt);
  const auto statuses = run_ranks(static_cast<int>(t.world()), [&](const comm::GroupOptions& options) {
    const auto dims = *shape::ParallelDims::make(t);
    parallel::Mesh pretended = parallel::pretend(dims, options.rank);
    const i64 dry = peak_of(t, at::kMeta, pretended, [](const step::TrainStep&) {});
    parallel::Mesh mesh(dims, options.rank, [&](const std::string& name, int rank, int size) {
      comm::GroupOptions group = options;
      group.name = name, group.rank = rank, group.world = size;
      return comm::make_backend(t.backend, group);
    });
    const i64 stage = mesh.place().pp;
    const i64 real = peak_of(t, at::kCPU, mesh, [&](const step::TrainStep& step) {
      check_splits(t, mesh, stage);
      check_states(t, mesh, step, stage);
    });
    // A dry run foresees the rows of forced routings; of a learned one it takes an even choice.
    if (t.routing != "learned") equal("peak bytes of rank " + std::to_string(options.rank), real, dry);
    mesh[Dimension::kWorld].barrier();
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Products, ProductCosts, ::testing::ValuesIn(kCosts),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sweep::testing
