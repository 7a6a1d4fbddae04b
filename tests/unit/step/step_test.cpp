// The training step on one rank: the batch, accumulation, that it learns, and what it refuses.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/model/stage.h"
#include "bench_kernels/parallel/model_state.h"
#include "bench_kernels/step/batch.h"
#include "bench_kernels/step/dry_run.h"
#include "bench_kernels/step/safetensors.h"
#include "bench_kernels/step/train_step.h"
#include "tests/unit/step/small_trial.h"

namespace sweep::step {
namespace {

const parallel::Mesh& alone() {
  static const parallel::Mesh mesh = parallel::alone();
  return mesh;
}

TEST(Batch, EveryLayoutTakesTheSameGlobalRows) {
  Trial whole = small_trial();
  const Batch all = make_batch(whole, at::kCPU, {}, synthetic_tokens(1, 97));
  const at::Tensor tokens = all.tokens[0].view({4, 32}), labels = all.labels[0].view({4, 32});
  EXPECT_TRUE(labels.narrow(1, 0, 31).equal(tokens.narrow(1, 1, 31))) << "labels are the next tokens";
  Trial parts = whole;
  parts.dp = 2, parts.grad_accum = 2, parts.micro_batch_size = 1;
  for (i64 rank = 0; rank < 2; ++rank) {
    const Batch part = make_batch(parts, at::kCPU, {0, 0, rank, 0}, synthetic_tokens(1, 97));
    for (i64 micro = 0; micro < 2; ++micro) EXPECT_TRUE(part.tokens[micro].equal(tokens[rank * 2 + micro]));
  }
}

// The watchdog of a rank sees no other sign of life while billions of weights are made.
TEST(TrainStep, MakingTheWeightsBeatsAfterEachTensor) {
  for (const i64 zero : {0, 3}) {
    Trial t = small_trial();
    t.zero = zero;
    int beats = 0;
    const TrainStep step(t, at::kCPU, alone(), [&](Part part) { beats += part == Part::kNone ? 1 : 0; });
    EXPECT_GE(beats, 2 * 9 + 3) << "tensors of two layers, embedding, norm and head; zero " << zero;
  }
}

// A model of any size must not diverge in the steps that are timed.
TEST(TrainStep, TheTimedLearningRateMovesAWeightByAHundredThousandthAtMost) {
  TrainStep step(small_trial(), at::kCPU, alone(), nullptr);
  std::vector<at::Tensor> before;
  for (const auto& tensor : step.tensors()) before.push_back(tensor.value.clone());
  step.run();
  std::size_t i = 0;
  for (const auto& tensor : step.tensors())
    EXPECT_LE((tensor.value - before[i++]).abs().max().item<double>(), 1.2e-5) << tensor.name;
}

// Looking at the gradients of a clipped step changes nothing. An optimizer outside the device leaves them as they were, so
// that they are clipped when they are read.
TEST(TrainStep, ClippedGradientsAreTheSameWhenTheyAreReadAgain) {
  Trial t = small_trial();
  t.grad_clip = true, t.offload = Offload::kOptimizer;
  TrainStep step(t, at::kCPU, alone(), nullptr);
  step.run();
  std::vector<at::Tensor> first;
  for (const auto& tensor : step.tensors()) first.push_back(tensor.gradient.clone());
  std::size_t i = 0;
  for (const auto& tensor : step.tensors())
    EXPECT_TRUE(at::equal(tensor.gradient, first[i++])) << tensor.name;
}

// A scale that fp16 gradients cannot hold costs the first steps: they are skipped until it has been halved
// often enough.
TEST(TrainStep, TheInitialScalePowerDecidesWhichStepsCount) {
  Trial t = small_trial();
  t.precision = Precision::kFp16;
  for (const i64 power : {4, 16}) {
    t.initial_scale_power = power;
    const auto times = TrainStep(t, at::kCPU, alone(), nullptr).run();
    EXPECT_FALSE(times.skipped) << power;
    EXPECT_EQ(times.loss_scale, std::ldexp(1, static_cast<int>(power)));
  }
  t.initial_scale_power = 32;
  const auto times = TrainStep(t, at::kCPU, alone(), nullptr).run();
  EXPECT_TRUE(times.skipped);
  EXPECT_EQ(times.loss_scale, std::ldexp(1, 31));
}

// Library operators in the place of one group of fused loops, or of all: the same step.
TEST(TrainStep, EachChoiceOfFusedKernelsHasTheSameLossAndGradients) {
  const Trial all = small_trial();
  TrainStep fused(all, at::kCPU, alone(), nullptr);
  const double loss = fused.run().loss;
  std::vector<at::Tensor> gradients;
  for (const auto& tensor : fused.tensors()) gradients.push_back(tensor.gradient.clone());
  for (const FusedKernels choice : {FusedKernels::kNone, FusedKernels::kNoNorm, FusedKernels::kNoRope,
                                    FusedKernels::kNoMlp, FusedKernels::kNoLoss}) {
    Trial t = all;
    t.fused_kernels = choice;
    TrainStep step(t, at::kCPU, alone(), nullptr);
    EXPECT_NEAR(step.run().loss, loss, 1e-6) << to_string(choice);
    std::size_t i = 0;
    for (const auto& tensor : step.tensors()) {
      EXPECT_LE((tensor.gradient - gradients[i++]).abs().max().item<float>(), 1e-6f)
          << tensor.name << ' ' << to_string(choice);
    }
  }
}

// The step's loss is that of the weights before its update.
TEST(TrainStep, AnEvaluationHasTheLossOfTheNextStepAndKeepsNothing) {
  memory::install(c10::kCPU);
  for (const bool packed : {false, true}) {
    Trial t = small_trial();
    t.eval_batch_size = t.micro_batch_size, t.eval_batches = 3;
    if (packed) t.lengths = "uniform 5 20", t.packing = true;
    TrainStep step(t, at::kCPU, alone(), nullptr);
    const i64 tokens = step.run().tokens;
    step.run();
    step.evaluate();  // frees the step's gradients
    const i64 before = memory::stats(c10::kCPU).current;
    const Evaluation seen = step.evaluate();
    EXPECT_TRUE(packed || memory::stats(c10::kCPU).current == before);
    for (const parallel::ModelState* state : step.states()) EXPECT_EQ(state->bytes().gradients, 0);
    EXPECT_EQ(seen.tokens, 3 * tokens);
    EXPECT_GT(seen.ns, 0);
    EXPECT_NEAR(step.run().loss, seen.loss, 1e-6 * seen.loss) << packed;
  }
}

// Documents that are packed are sequences of their own; padding is none.
TEST(TrainStep, TextMetricsKeepNothingAndAreThereOnlyWhereTheyAreAskedFor) {
  memory::install(c10::kCPU);
  for (const bool packed : {false, true}) {
    Trial t = small_trial();
    t.eval_batch_size = t.micro_batch_size, t.eval_batches = 2;
    if (packed) t.lengths = "uniform 5 20", t.packing = true;
    EXPECT_FALSE(TrainStep(t, at::kCPU, alone(), nullptr).evaluate().text);
    t.eval_metrics = EvalMetrics::kNgram;
    TrainStep step(t, at::kCPU, alone(), nullptr, {.lr = 1e-2});
    for (int i = 0; i < 20; ++i) step.run();
    EXPECT_FALSE(step.evaluate(/*scores=*/false).text);
    const i64 before = memory::stats(c10::kCPU).current;
    const Evaluation seen = step.evaluate();
    EXPECT_TRUE(packed || memory::stats(c10::kCPU).current == before);
    ASSERT_TRUE(seen.text);
    EXPECT_GT(seen.text->ns, 0);
    EXPECT_GT(seen.text->bleu, 0);
    EXPECT_LE(seen.text->bleu, seen.text->rouge_l + 1e-12);
    EXPECT_NEAR(step.run().loss, seen.loss, 1e-6 * seen.loss) << packed;
  }
}

TEST(TrainStep, Tf32NeedsFp32AndAGpu) {
  Trial t = small_trial();
  t.tf32 = true;
  EXPECT_TRUE(unsupported(t, at::kCPU));
  t.hardware = "h100-sxm-80gb";
  EXPECT_FALSE(unsupported(t, at::kCUDA));
  t.precision = Precision::kBf16;
  EXPECT_TRUE(unsupported(t, at::kCUDA));
}

TEST(TrainStep, LossFallsWithEveryOptimizerAttentionAndPrecision) {
  for (const OptimizerKind optimizer :
       {OptimizerKind::kPlain, OptimizerKind::kForeach, OptimizerKind::kFused, OptimizerKind::kSgdMomentum,
        OptimizerKind::kAdamw8bit, OptimizerKind::kPagedAdamw}) {
    for (const AttentionKind attention : {AttentionKind::kMath, AttentionKind::kFlash}) {
      for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
        Trial t = small_trial();
        t.optimizer = optimizer, t.attention = attention, t.precision = precision;
        TrainStep step(t, at::kCPU, alone(), nullptr, {.lr = 1e-3});
        const double first = step.run().loss;
        double last = first;
        for (int i = 0; i < 5; ++i) last = step.run().loss;
        EXPECT_NEAR(first, std::log(97.0), 0.2)
            << to_string(optimizer) << to_string(attention) << to_string(precision);
        EXPECT_LT(last, first - 0.02) << to_string(optimizer) << to_string(attention) << to_string(precision);
      }
    }
  }
}

TEST(TrainStep, AccumulationGivesTheUpdateOfTheWholeBatch) {
  const Trial whole = small_trial();
  Trial parts = whole;
  parts.micro_batch_size = 1, parts.grad_accum = 4;
  TrainStep a(whole, at::kCPU, alone(), nullptr), b(parts, at::kCPU, alone(), nullptr);
  EXPECT_NEAR(a.run().loss, b.run().loss, 1e-6);
  const auto first = a.tensors(), second = b.tensors();
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_LE((first[i].gradient - second[i].gradient).abs().max().item<float>(), 1e-6f) << first[i].name;
  }
}

TEST(TrainStep, OptimizersAgree) {
  std::vector<at::Tensor> results;
  for (const OptimizerKind optimizer :
       {OptimizerKind::kPlain, OptimizerKind::kForeach, OptimizerKind::kFused}) {
    Trial t = small_trial();
    t.optimizer = optimizer;
    TrainStep step(t, at::kCPU, alone(), nullptr);
    for (int i = 0; i < 3; ++i) step.run();
    results.push_back(step.tensors()[3].value.clone());
  }
  EXPECT_LE((results[0] - results[1]).abs().max().item<float>(), 2e-5f);
  EXPECT_LE((results[0] - results[2]).abs().max().item<float>(), 2e-5f);
}

// torch.optim.SGD: v = 0.9 v + (g + wd p), p -= lr v; without momentum v is what stands in brackets.
TEST(TrainStep, SgdFollowsItsFormula) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kSgdMomentum}) {
    Trial t = small_trial();
    t.optimizer = kind;
    const optim::OptimizerOptions options{.lr = 1e-5, .weight_decay = 0.1, .sgd_scale = 1e4, .momentum = 0.9};
    TrainStep step(t, at::kCPU, alone(), nullptr, options);
    std::vector<at::Tensor> values, velocities;
    for (const auto& tensor : step.tensors()) {
      values.push_back(tensor.value.to(at::kDouble));
      velocities.push_back(at::zeros_like(values.back()));
    }
    for (int i = 0; i < 3; ++i) {
      step.run();
      std::size_t n = 0;
      for (const auto& tensor : step.tensors()) {
        const at::Tensor change = tensor.gradient.to(at::kDouble) + 0.1 * values[n];
        velocities[n] = (kind == OptimizerKind::kSgd ? 0 : 0.9) * velocities[n] + change;
        values[n] -= 0.1 * velocities[n];
        EXPECT_LE((tensor.value.to(at::kDouble) - values[n]).abs().max().item<double>(), 1e-6) << tensor.name;
        ++n;
      }
    }
  }
}

// Shazeer and Stern 2018, algorithms 4 to 6: the gradient over sqrt(R C / mean R) of a matrix, or over sqrt(V) of a vector;
// no larger than 1 in the mean, times lr and the size of the parameter's numbers.
at::Tensor adafactor_update(const at::Tensor& value, const at::Tensor& gradient,
                            std::vector<at::Tensor>& kept, int count, double lr) {
  const at::Tensor squares = gradient.square() + 1e-30;
  const double old = 1 - std::pow(count, -0.8);
  const auto follow = [&](std::size_t i, const at::Tensor& now) {
    if (kept.size() <= i) kept.push_back(at::zeros_like(now));
    kept[i] = old * kept[i] + (1 - old) * now;
  };
  at::Tensor expected;
  if (gradient.dim() == 2) {
    follow(0, squares.mean(1)), follow(1, squares.mean(0));
    expected = at::outer(kept[0], kept[1]) / kept[0].mean();
  } else {
    follow(0, squares);
    expected = kept[0];
  }
  const auto root_mean = [](const at::Tensor& t) { return std::sqrt(t.square().mean().item<double>()); };
  const at::Tensor update = gradient / expected.sqrt();
  const double rate = std::max(1e-3, root_mean(value)) * std::min(lr, 1 / std::sqrt(count));
  return rate * update / std::max(1.0, root_mean(update));
}

TEST(TrainStep, AdafactorFollowsItsFormula) {
  Trial t = small_trial();
  t.optimizer = OptimizerKind::kAdafactor;
  const optim::OptimizerOptions options{.lr = 1e-2, .weight_decay = 0.1, .adafactor_scale = 2};
  TrainStep step(t, at::kCPU, alone(), nullptr, options);
  std::vector<at::Tensor> values;
  for (const auto& tensor : step.tensors()) values.push_back(tensor.value.to(at::kDouble));
  std::vector<std::vector<at::Tensor>> kept(values.size());
  for (int count = 1; count <= 3; ++count) {
    step.run();
    std::size_t n = 0;
    for (const auto& tensor : step.tensors()) {
      const at::Tensor gradient = tensor.gradient.to(at::kDouble);
      const at::Tensor update = adafactor_update(values[n], gradient, kept[n], count, 2e-2);
      values[n] = values[n] * (1 - 2e-2 * 0.1) - update;
      EXPECT_LE((tensor.value.to(at::kDouble) - values[n]).abs().max().item<double>(), 1e-6) << tensor.name;
      ++n;
    }
  }
}

TEST(TrainStep, TellsPartsInOrderAndTimesAddUp) {
  Trial t = small_trial();
  t.grad_accum = 2, t.micro_batch_size = 2;
  std::vector<Part> parts;
  TrainStep step(t, at::kCPU, alone(), [&](Part p) { parts.push_back(p); });
  parts.clear();  // drops the parts of making the weights
  const StepTimes times = step.run();
  EXPECT_EQ(parts, (std::vector<Part>{Part::kForward, Part::kBackward, Part::kForward, Part::kBackward,
                                      Part::kOptimizer, Part::kNone}));
  EXPECT_EQ(times.tokens, 4 * 32);
  EXPECT_FALSE(times.exposed_comm_ns);
  EXPECT_LE(times.forward_ns + times.backward_ns + times.optimizer_ns, times.step_ns);
}

TEST(TrainStep, Fp8IsForGpusAndRoundsItsFactorsBesideTheBf16Step) {
  Trial t = small_trial();
  t.precision = Precision::kFp8;
  EXPECT_FALSE(unsupported(t, c10::DeviceType::CUDA)) << *unsupported(t, c10::DeviceType::CUDA);
  const auto peak = [&](Precision precision) {
    t.precision = precision;
    const auto line = dry_run_line(t, Backend::kCuda);
    EXPECT_TRUE(line) << (line ? "" : line.error().message);
    return line ? nlohmann::json::parse(*line)["peak_bytes"][0].get<i64>() : 0;
  };
  EXPECT_GE(peak(Precision::kFp8), peak(Precision::kBf16Master));
  EXPECT_FALSE(dry_run_line((t.precision = Precision::kFp8, t), Backend::kCpu));
}

TEST(TrainStep, RefusesWhatItDoesNotRun) {
  Trial t = small_trial();
  t.packing = true;
  EXPECT_THROW(TrainStep(t, at::kCPU, alone(), nullptr), std::invalid_argument);
  t = small_trial();
  t.precision = Precision::kFp8;
  EXPECT_NE(unsupported(t, c10::DeviceType::CPU)->find("no fp8 matmuls"), std::string::npos);
  t = small_trial();
  t.attention = AttentionKind::kFlash;
  EXPECT_TRUE(unsupported(t, c10::DeviceType::CUDA));
  EXPECT_FALSE(unsupported(t, c10::DeviceType::CPU));
}

class Weights : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("weights_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string load() {
    model::Options options;
    options.seq_len = 8;
    model::AloneLayout layout;
    model::Stage stage(small_trial().spec, options, layout.value(),
                       {0, small_trial().spec.layers, true, true});
    stage.parameters().layout({at::TensorOptions(at::kFloat)});
    const auto names = Checkpoint::open(folder_).and_then(
        [&](const Checkpoint& checkpoint) { return checkpoint.names(stage.parameters()); });
    return names ? "loaded" : names.error().message;
  }
  std::filesystem::path folder_;
};

TEST_F(Weights, AMissingFileAMissingTensorAndAPathOutOfTheFolderAreRefused) {
  EXPECT_NE(load().find("has neither model.safetensors"), std::string::npos);
  write("model.safetensors.index.json", R"({"weight_map": {"a": "../../etc/passwd"}})");
  EXPECT_NE(load().find("is not the name of a file in this folder"), std::string::npos);
  write("model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  EXPECT_NE(load().find("has no tensor 'model.embed_tokens.weight'"), std::string::npos);
}

}  // namespace
}  // namespace sweep::step
