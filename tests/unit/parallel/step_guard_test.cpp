// The loss scale of fp16 and clipping: skipped steps, the scale's halving and doubling, the norm.
#include "bench_kernels/parallel/step_guard.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bench_kernels/model/stage.h"

namespace sweep::parallel {
namespace {

struct Rig {
  explicit Rig(const Trial& t)
      : stage(t.spec, options(t), layout.value(), {0, t.spec.layers, true, true}),
        state(stage.parameters(), mesh, t, at::TensorOptions(compute_type(t))) {}

  static model::Options options(const Trial& t) {
    model::Options o;
    o.type = compute_type(t), o.seq_len = 8;
    return o;
  }
  // A step whose gradients are all this number.
  void fill(double gradient) {
    model::Parameters& p = stage.parameters();
    state.begin_step();
    state.begin_backward(true);
    for (std::size_t group = 0; group < p.groups(); ++group) state.need(group, model::Pass::kBackward);
    for (model::Parameters::Id id = 0; id < p.stacks().size(); ++id) {
      p.gradients().of(id).grad.fill_(gradient);
      p.gradients().ready(id);
    }
    state.finish_gradients();
  }
  double elements() const { return static_cast<double>(state.elements() - state.padding()); }

  Mesh mesh = alone();
  model::AloneLayout layout;
  model::Stage stage;
  ModelState state;
};

Trial tiny(Precision precision) {
  Trial t;
  t.spec.layers = 1, t.spec.hidden_size = 8, t.spec.heads = t.spec.kv_heads = 2, t.spec.head_dim = 4;
  t.spec.intermediate_size = 12, t.spec.vocab_size = 10;
  t.precision = precision;
  return t;
}

TEST(StepGuard, AsksNothingWhereNothingIsWanted) {
  Rig rig(tiny(Precision::kFp32));
  StepGuard guard(tiny(Precision::kFp32), rig.mesh, at::kCPU);
  rig.fill(INFINITY);
  EXPECT_EQ(guard.judge({&rig.state}), 1.0);
  EXPECT_EQ(guard.loss_scale(), 1);
}

TEST(StepGuard, ClipsToNormOneAndLeavesSmallerAlone) {
  Trial t = tiny(Precision::kFp32);
  t.grad_clip = true;
  Rig rig(t);
  StepGuard guard(t, rig.mesh, at::kCPU);
  rig.fill(2);
  const double norm = 2 * std::sqrt(rig.elements());
  EXPECT_NEAR(*guard.judge({&rig.state}), 1 / norm, 1e-7);
  EXPECT_NEAR(*guard.norm(), norm, 1e-6);
  rig.fill(1e-3);
  EXPECT_EQ(guard.judge({&rig.state}), 1.0);
}

TEST(StepGuard, HalvesTheScaleOnInfinityAndDoublesItAfterGoodSteps) {
  const Trial t = tiny(Precision::kFp16Amp);
  Rig rig(t);
  StepGuard guard(t, rig.mesh, at::kCPU, 2);
  EXPECT_EQ(guard.loss_scale(), 65536);
  for (const double bad : {static_cast<double>(INFINITY), std::nan("")}) {
    rig.fill(bad);
    EXPECT_FALSE(guard.judge({&rig.state})) << "a step with such a gradient does not count";
  }
  EXPECT_EQ(guard.loss_scale(), 16384);
  for (int i = 0; i < 2; ++i) {
    rig.fill(1);
    EXPECT_EQ(guard.judge({&rig.state}), 1.0 / 16384);
  }
  EXPECT_EQ(guard.loss_scale(), 32768);
}

TEST(StepGuard, TheScaleStartsAtTwoToTheTrialsPower) {
  for (const std::int64_t power : {0, 4, 16, 32}) {
    Trial t = tiny(Precision::kFp16);
    t.initial_scale_power = power;
    Rig rig(t);
    StepGuard guard(t, rig.mesh, at::kCPU);
    EXPECT_EQ(guard.loss_scale(), std::ldexp(1, static_cast<int>(power)));
    rig.fill(INFINITY);
    EXPECT_FALSE(guard.judge({&rig.state}));
    EXPECT_EQ(guard.loss_scale(), std::ldexp(1, std::max(0, static_cast<int>(power) - 1))) << "1 at least";
  }
}

}  // namespace
}  // namespace sweep::parallel
