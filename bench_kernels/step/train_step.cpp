#include "bench_kernels/step/train_step.h"

#include <ATen/ATen.h>
#include <malloc.h>
#include <torch/csrc/autograd/autograd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench_kernels/model/transformer.h"
#include "bench_kernels/optim/adamw.h"
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

model::Options model_options(const Trial& t, at::Device device) {
  model::Options options;
  options.device = device;
  options.type = t.precision == "bf16" ? at::kBFloat16 : at::kFloat;
  options.attention = attention_of(t, stands_for(device));
  options.seq_len = t.seq_len;
  options.seed = kSeed;
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
  Impl(const Trial& t, at::Device device, i64 dp_rank, parallel::GradientSync* sync,
       std::function<void(Part)> on_part)
      : trial(t),
        device(device),
        sync(sync),
        on_part(std::move(on_part)),
        model(t.spec, model_options(t, device)),
        clock(device) {
    std::vector<at::Tensor> leaves;
    for (const auto& [name, tensor] : model.parameters().all()) leaves.push_back(tensor);
    if (sync)
      adopt_buckets(leaves);
    else
      model.parameters().allocate_gradients();
    optimizer.emplace(std::move(leaves), optim::kind_from(t.optimizer));
    batch = make_batch(t, device, dp_rank, kSeed);
    total = at::zeros({1}, at::TensorOptions(device).dtype(at::kDouble));
    one = at::ones({}, at::TensorOptions(device).dtype(kernels::accumulate_type(model.options().type)));
  }

  // The buckets are the gradients: the sync turns a parameter without a gradient into one whose gradient is a
  // view of its bucket when its post-accumulate hook runs outside a last micro-step.
  void adopt_buckets(const std::vector<at::Tensor>& leaves) {
    sync->attach(leaves);
    sync->set_last_micro_step(false);
    for (std::size_t id = 0; id < leaves.size(); ++id) {
      model.parameters().ready(id);
      TORCH_CHECK(leaves[id].grad().defined(), "the gradient sync gave no gradient for ",
                  model.parameters().all()[id].first);
    }
  }

  void begin(Part part) const {
    if (on_part) on_part(part);
  }

  Trial trial;
  at::Device device;
  parallel::GradientSync* sync;
  std::function<void(Part)> on_part;
  model::Transformer model;
  std::optional<optim::AdamW> optimizer;
  Batch batch;
  at::Tensor total, one;
  PartClock clock;
};

TrainStep::TrainStep(const Trial& t, at::Device device, std::int64_t dp_rank, parallel::GradientSync* sync,
                     std::function<void(Part)> on_part) {
  if (const auto sentence = unsupported(t, stands_for(device))) throw std::invalid_argument(*sentence);
  if (device.is_cpu()) keep_freed_memory();
  impl_ = std::make_unique<Impl>(t, device, dp_rank, sync, std::move(on_part));
}

TrainStep::~TrainStep() = default;

StepTimes TrainStep::run() {
  Impl& s = *impl_;
  const i64 micro_steps = s.trial.grad_accum;
  StepTimes times;
  s.clock.restart();
  s.total.zero_();
  std::vector<PartClock::Mark> marks{s.clock.mark()};  // before, then after each forward and each backward
  for (i64 micro = 0; micro < micro_steps; ++micro) {
    s.begin(Part::kForward);
    if (s.sync) s.sync->set_last_micro_step(micro + 1 == micro_steps);
    const at::Tensor loss = s.model.loss(s.batch.tokens[micro], s.batch.labels[micro],
                                         {micro == 0, 1.0 / static_cast<double>(micro_steps), s.total});
    marks.push_back(s.clock.mark());
    s.begin(Part::kBackward);
    torch::autograd::backward({loss}, {s.one});
    marks.push_back(s.clock.mark());
  }
  if (s.sync) {
    s.begin(Part::kCommunication);
    s.sync->finish();
    marks.back() = s.clock.mark();  // a backward ends when its gradients are averaged
    times.exposed_comm_ns = s.sync->exposed_wait_ns();
  }
  s.begin(Part::kOptimizer);
  s.optimizer->step();
  const PartClock::Mark end = s.clock.mark();
  s.clock.wait(end);
  s.begin(Part::kNone);
  for (i64 micro = 0; micro < micro_steps; ++micro) {
    times.forward_ns += s.clock.span_ns(marks[2 * micro], marks[2 * micro + 1]);
    times.backward_ns += s.clock.span_ns(marks[2 * micro + 1], marks[2 * micro + 2]);
  }
  times.optimizer_ns = s.clock.span_ns(marks.back(), end);
  times.step_ns = s.clock.span_ns(marks.front(), end);
  times.tokens = micro_steps * s.trial.micro_batch_size * s.trial.seq_len;
  if (!s.device.is_meta()) times.loss = s.total.item<double>() / static_cast<double>(times.tokens);
  return times;
}

const std::vector<std::pair<std::string, at::Tensor>>& TrainStep::named_parameters() const {
  return impl_->model.parameters().all();
}

std::string TrainStep::effective() const {
  const bool flash = impl_->model.options().attention == model::Attention::kFlash;
  return nlohmann::json{{"attention", flash ? "flash" : "math"},
                        {"optimizer", impl_->trial.optimizer},
                        {"precision", impl_->trial.precision},
                        {"device", impl_->device.str()}}
      .dump();
}

}  // namespace sweep::step
