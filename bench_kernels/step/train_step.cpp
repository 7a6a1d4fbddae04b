#include "bench_kernels/step/train_step.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/parallel/model_state.h"
#include "bench_kernels/step/batch.h"
#include "bench_kernels/step/part_clock.h"

namespace sweep::step {

namespace {

constexpr std::uint64_t kSeed = 1;

// Keeps freed memory in the process: without this each step's large buffers come from the kernel again, page
// by page, zeroed (some 0.25 us per 4 KiB page).
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT32_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
}

// Whose kernels run, or on meta tensors whose allocations are counted.
c10::DeviceType stands_for(at::Device device) {
  if (!device.is_meta()) return device.type();
  return kernels::path() == kernels::Path::kPlain ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
}

model::Attention attention_of(const Trial& t, c10::DeviceType device) {
  if (t.attention == "math") return model::Attention::kMath;
  // The library's flash kernel on CUDA takes half precisions only; auto falls back.
  if (t.attention == "auto" && device == c10::DeviceType::CUDA && t.precision == "fp32")
    return model::Attention::kMath;
  return model::Attention::kFlash;
}

model::Routing routing_of(const Trial& t) {
  if (t.routing == "learned") return model::Routing::kLearned;
  return t.routing == "skewed" ? model::Routing::kSkewed : model::Routing::kBalanced;
}

model::Options model_options(const Trial& t, at::Device device) {
  model::Options options;
  options.device = device;
  options.type = t.precision == "bf16" ? at::kBFloat16 : at::kFloat;
  options.attention = attention_of(t, stands_for(device));
  options.seq_len = t.seq_len;
  options.seed = kSeed;
  options.routing = routing_of(t);
  options.hot_percent = t.hot_percent;
  options.capacity_percent = t.capacity_percent;
  return options;
}

std::optional<std::string> unsupported_axis(const Trial& t) {
  const auto only = [](const char* axis, const std::string& value, const char* known) {
    return std::optional<std::string>("the training step does not run " + std::string(axis) + " = " + value +
                                      "; it runs " + known + ".");
  };
  if (t.tp != 1) return only("tp", std::to_string(t.tp), "tp = 1");
  if (t.pp != 1) return only("pp", std::to_string(t.pp), "pp = 1");
  if (t.cp != 1) return only("cp", std::to_string(t.cp), "cp = 1");
  if (t.ep != 1) return only("ep", std::to_string(t.ep), "ep = 1");
  if (t.zero != 0) return only("zero", std::to_string(t.zero), "zero = 0");
  if (t.recompute != "none") return only("recompute", t.recompute, "none");
  if (t.offload != "none") return only("offload", t.offload, "none");
  if (t.packing) return only("packing", "true", "packing = false");
  if (t.precision != "fp32" && t.precision != "bf16") return only("precision", t.precision, "fp32 and bf16");
  if (t.optimizer != "plain" && t.optimizer != "foreach" && t.optimizer != "fused") {
    return only("optimizer", t.optimizer, "plain, foreach and fused");
  }
  if (t.attention != "math" && t.attention != "flash" && t.attention != "auto") {
    return only("attention", t.attention, "math, flash and auto");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unsupported(const Trial& t, c10::DeviceType device) {
  if (const auto sentence = unsupported_axis(t)) return sentence;
  if (!t.spec.rope && t.seq_len > t.spec.max_positions) {
    return "seq_len = " + std::to_string(t.seq_len) + " is longer than the model's table of " +
           std::to_string(t.spec.max_positions) + " learned positions.";
  }
  if (t.attention == "flash" && device == c10::DeviceType::CUDA && t.precision == "fp32") {
    return "flash attention on CUDA needs precision = bf16; use attention = math or auto for fp32.";
  }
  return std::nullopt;
}

struct TrainStep::Impl {
  Impl(const Trial& t, at::Device device, const parallel::Mesh& mesh, std::function<void(Part)> on_part)
      : trial(t),
        device(device),
        mesh(mesh),
        on_part(std::move(on_part)),
        options(model_options(t, device)),
        stage(t.spec, options, parallel::layout_of(t, mesh), {0, t.spec.layers, true, true}),
        state(stage.parameters(), mesh, t, at::TensorOptions(device).dtype(options.type)),
        clock(device) {
    stage.set_keeper(&state);
    batch = make_batch(t, device, mesh.place(), kSeed);
    total = at::zeros({1}, at::TensorOptions(device).dtype(at::kDouble));
  }

  void begin(Part part) const {
    if (on_part) on_part(part);
  }
  model::MicroStep micro_step(i64 micro) const {
    const auto i = static_cast<std::size_t>(micro);
    return {batch.tokens[i], batch.labels[i], 1.0 / static_cast<double>(trial.grad_accum), total};
  }

  Trial trial;
  at::Device device;
  const parallel::Mesh& mesh;
  std::function<void(Part)> on_part;
  model::Options options;
  model::Stage stage;
  parallel::ModelState state;
  Batch batch;
  at::Tensor total;
  PartClock clock;
};

TrainStep::TrainStep(const Trial& t, at::Device device, const parallel::Mesh& mesh,
                     std::function<void(Part)> on_part) {
  if (const auto sentence = unsupported(t, stands_for(device))) throw std::invalid_argument(*sentence);
  if (device.is_cpu()) keep_freed_memory();
  impl_ = std::make_unique<Impl>(t, device, mesh, std::move(on_part));
}

TrainStep::~TrainStep() = default;

StepTimes TrainStep::run() {
  Impl& s = *impl_;
  const i64 micro_steps = s.trial.grad_accum;
  StepTimes times;
  s.clock.restart();
  s.total.zero_();
  s.stage.routing_load() = {};
  s.state.begin_step();
  std::vector<PartClock::Mark> marks{s.clock.mark()};  // before, then after each forward and each backward
  for (i64 micro = 0; micro < micro_steps; ++micro) {
    const model::MicroStep step = s.micro_step(micro);
    model::Stage::Tape tape;
    s.begin(Part::kForward);
    at::Tensor out = s.stage.forward(step, {}, tape);
    marks.push_back(s.clock.mark());
    s.begin(Part::kBackward);
    s.state.begin_backward(micro + 1 == micro_steps);
    s.stage.backward(step, std::move(out), std::move(tape));
    marks.push_back(s.clock.mark());
  }
  const bool alone = s.mesh[shape::Dimension::kWorld].alone();
  if (!alone) s.begin(Part::kCommunication);
  s.state.finish_gradients();
  if (!alone) {
    marks.back() = s.clock.mark();  // a backward ends when its gradients are averaged
    times.exposed_comm_ns = s.state.exposed_wait_ns();
  }
  s.begin(Part::kOptimizer);
  s.state.update();
  const PartClock::Mark end = s.clock.mark();
  s.clock.wait(end);
  s.begin(Part::kNone);
  for (i64 micro = 0; micro < micro_steps; ++micro) {
    const auto i = static_cast<std::size_t>(micro);
    times.forward_ns += s.clock.span_ns(marks[2 * i], marks[2 * i + 1]);
    times.backward_ns += s.clock.span_ns(marks[2 * i + 1], marks[2 * i + 2]);
  }
  times.optimizer_ns = s.clock.span_ns(marks.back(), end);
  times.step_ns = s.clock.span_ns(marks.front(), end);
  if (s.trial.spec.experts > 0) times.expert_load = s.stage.routing_load().worst;
  times.tokens = micro_steps * s.trial.micro_batch_size * s.trial.seq_len / s.trial.cp;
  if (!s.device.is_meta()) times.loss = s.total.item<double>() / static_cast<double>(times.tokens);
  return times;
}

std::vector<TrainStep::Tensor> TrainStep::tensors() {
  std::vector<Tensor> all;
  const model::Parameters& parameters = impl_->stage.parameters();
  for (const auto& named : parameters.all()) {
    const auto& stack = parameters.stacks()[named.stack];
    all.push_back({named.name, stack.parts[named.part].slice, stack.role, impl_->state.value(named),
                   impl_->state.gradient(named)});
  }
  return all;
}

std::string TrainStep::effective() const {
  const bool flash = impl_->options.attention == model::Attention::kFlash;
  return nlohmann::json{{"attention", flash ? "flash" : "math"},
                        {"optimizer", impl_->trial.optimizer},
                        {"precision", impl_->trial.precision},
                        {"device", impl_->device.str()}}
      .dump();
}

}  // namespace sweep::step
