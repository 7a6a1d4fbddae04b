#include "bench_kernels/step/train_step.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device_ops.h"
#include "bench_kernels/parallel/pipeline.h"
#include "bench_kernels/parallel/step_guard.h"
#include "bench_kernels/shape/around_step.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"
#include "bench_kernels/shape/found_gpu.h"
#include "bench_kernels/shape/graphs.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"
#include "bench_kernels/shape/step_sizes.h"
#include "bench_kernels/step/data_loader.h"
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

// The device whose kernels run; with meta tensors, the one whose allocations are counted.
c10::DeviceType stands_for(at::Device device) {
  if (!device.is_meta()) return device.type();
  return kernels::path() == kernels::Path::kPlain ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
}

shape::KernelPath path_on(c10::DeviceType device) {
  return device == c10::DeviceType::CUDA ? shape::KernelPath::kGpu : shape::KernelPath::kProcessor;
}

model::Attention kernel_of(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kMath:
      return model::Attention::kMath;
    case AttentionKind::kSdpa:
      return model::Attention::kSdpa;
    case AttentionKind::kCudnn:
      return model::Attention::kCudnn;
    default:
      return model::Attention::kFlash;
  }
}

model::Options model_options(const Trial& t, at::Device device, const Given& given,
                             std::function<void()> filled) {
  model::Options options;
  options.device = device;
  options.type = parallel::compute_type(t);
  options.fp8 = t.precision == Precision::kFp8;
  options.autocast = shape::autocasts(t);
  if (options.autocast) options.loss_chunk = std::numeric_limits<std::int64_t>::max();
  options.adapters = shape::adapters_of(t);
  options.quantize_base = t.quantize_base != QuantizeBase::kNone;
  options.attention = kernel_of(shape::attention_kind(t, path_on(stands_for(device))));
  options.seq_len = t.seq_len;
  options.encoder_seq_len = shape::encoder_length(t);
  options.vocab_multiple = t.vocab_multiple;
  options.seed = kSeed;
  options.recompute = t.recompute;
  options.recompute_every = t.recompute_every;
  options.activation_offload = t.activation_offload;
  options.routing = t.routing;
  options.grouped = options.type == at::kBFloat16 && shape::runs_grouped(t.hardware);
  options.hot_percent = t.hot_percent;
  options.capacity_percent = t.capacity_percent;
  options.source = given.weights, options.codes = given.codes;
  options.filled = std::move(filled);
  return options;
}

void set_fused(const shape::FusedGroups& groups) {
  const auto bit = [](bool on, kernels::Fused group) { return on ? static_cast<unsigned>(group) : 0U; };
  kernels::set_fused(bit(groups.norm, kernels::Fused::kNorm) | bit(groups.rope, kernels::Fused::kRope) |
                     bit(groups.mlp, kernels::Fused::kMlp) | bit(groups.loss, kernels::Fused::kLoss) |
                     bit(groups.update, kernels::Fused::kUpdate));
}

// The micro-batches that run: all, or on meta tensors as many as show the peak.
i64 micros_of(const Trial& t, at::Device device) {
  return device.is_meta() ? shape::micros_with_same_peak(shape::Pipeline::of(t)) : t.grad_accum;
}

// The row behind each sequence: a document where they are packed.
std::vector<std::int64_t> ends_of(const model::MicroBatch& micro, i64 seq_len) {
  if (micro.documents != nullptr) return micro.documents->ends;
  std::vector<std::int64_t> ends;
  for (std::int64_t end = seq_len; end <= micro.labels.numel(); end += seq_len) ends.push_back(end);
  return ends;
}

}  // namespace

std::optional<std::string> unsupported(const Trial& t, c10::DeviceType device) {
  if (const auto sentence = shape::uneven_split(t)) return *sentence + ".";
  if (const auto sentence = shape::split_not_built(t)) return *sentence + ".";
  if (const auto sentence = shape::states_unsupported(t)) return sentence;
  if (const auto sentence = shape::adapters_objection(t)) return *sentence + ".";
  if (const auto sentence = shape::quantized_base_objection(t)) return *sentence + ".";
  if (const auto sentence = shape::documents_objection(t)) return *sentence + ".";
  if (const auto sentence = shape::around_objection(t)) return sentence;
  if (const auto sentence = shape::pipeline_objection(t)) return sentence;
  if (const auto sentence = shape::recompute_objection(t)) return sentence;
  if (t.spec.max_positions > 0 && t.seq_len > t.spec.max_positions) {
    return "seq_len = " + std::to_string(t.seq_len) + " is longer than the model's table of " +
           std::to_string(t.spec.max_positions) + " learned positions.";
  }
  if (t.precision == Precision::kFp8 && device != c10::DeviceType::CUDA)
    return "precision = fp8 needs a GPU with fp8 units: there are no fp8 matmuls on a processor; use "
           "bf16_master.";
  if (const auto sentence = shape::attention_objection(t, path_on(device))) return *sentence + ".";
  if (const auto sentence = shape::tf32_objection(t)) return *sentence + ".";
  if (const auto sentence = shape::graph_objection(t, path_on(device))) return *sentence + ".";
  if (const auto sentence = shape::encoder_objection(t)) return *sentence + ".";
  return std::nullopt;
}

// Groups that forward and backward wait for, those of Impl::agreements and of Impl::waits_for_end.
constexpr shape::Dimension kWatched[] = {shape::Dimension::kTensor,  shape::Dimension::kKeyValue,
                                         shape::Dimension::kContext, shape::Dimension::kExpert,
                                         shape::Dimension::kWorld,   shape::Dimension::kEnds};

struct TrainStep::Impl {
  // The begin and end of a wait or computation in the step.
  struct Stretch {
    PartClock::Mark begin = 0, end = 0;
    parallel::Pipeline::Moment kind = parallel::Pipeline::Moment::kBegins;
    shape::Act act = shape::Act::kForward;
  };
  struct Wait {
    PartClock::Mark begin = 0, end = 0;
  };
  Impl(const Trial& t, at::Device device, const parallel::Mesh& mesh, std::function<void(Part)> on_part,
       optim::OptimizerOptions adamw, const Given& given)
      : trial(t),
        device(device),
        mesh(mesh),
        on_part(std::move(on_part)),
        options(model_options(t, device, given, [this] { begin(Part::kNone); })),
        pipeline(t, options, mesh, micros_of(t, device), adamw),
        guard(t, mesh, device),
        clock(device) {
    tokens = given.tokens ? given.tokens : synthetic_tokens(kSeed, t.spec.vocab_size);
    batch = make_batch(t, device, mesh.place(), tokens);
    if (t.data != DataSource::kNone && given.reads_data && !device.is_meta())
      loader.emplace(t, mesh.place(), tokens, given.data_folder);
    total = at::zeros({1}, at::TensorOptions(device).dtype(at::kDouble));
    loss = device.is_meta() ? total : memory::empty_on_host({1}, total.options());
    for (const auto& part : pipeline.parts())
      part->state.watch_waits([this](bool begins) { watch_wait(waits, begins); });
    for (const shape::Dimension each : kWatched)
      mesh[each].watch_waits([this, each](bool begins) { watch_wait(waits_of(each), begins); });
  }
  ~Impl() {
    for (const shape::Dimension each : kWatched) mesh[each].watch_waits({});
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::vector<Wait>& waits_of(shape::Dimension d) {
    if (d == shape::Dimension::kWorld) return agreements;
    return d == shape::Dimension::kEnds ? waits_for_end : waits;
  }
  void watch_wait(std::vector<Wait>& of, bool begins) {
    if (!times_waits && (&of != &waits_for_end || pipeline.as_graphs())) return;
    if (begins)
      of.push_back({clock.mark(), 0});
    else
      of.back().end = clock.mark();
  }

  void begin(Part part) const {
    if (on_part) on_part(part);
  }
  model::MicroBatch micro_step(i64 micro) const {
    const auto i = static_cast<std::size_t>(micro);
    return {batch.tokens[i],
            batch.labels[i],
            guard.loss_scale() / static_cast<double>(trial.grad_accum),
            total,
            batch.documents.empty() ? nullptr : &batch.documents[i],
            batch.holes,
            batch.weight,
            {},
            batch.sources.empty() ? at::Tensor() : batch.sources[i]};
  }
  void load();
  void watch(parallel::Pipeline::Moment, shape::Act);
  // Moments of a step, in order.
  struct Marks {
    PartClock::Mark first = 0, loaded = 0, computed = 0, averaged = 0, last = 0;
  };
  StepTimes times(const Marks&) const;

  Trial trial;
  at::Device device;
  const parallel::Mesh& mesh;
  std::function<void(Part)> on_part;
  model::Options options;
  parallel::Pipeline pipeline;
  parallel::StepGuard guard;
  TokenSource tokens;
  Batch batch;
  std::optional<DataLoader> loader;
  at::Tensor total, loss;  // the loss: total on the host, copied there before the step's one wait
  PartClock clock;
  std::vector<Stretch> stretches;
  // Within the passes and the update; for all ranks' agreement on scale and norm; of a tied table's ends for each other.
  std::vector<Wait> waits, agreements, waits_for_end;
  bool times_waits = false;
};

// The step's data takes the place of the last step's.
void TrainStep::Impl::load() {
  if (!loader) return;
  const Batch next = loader->next();
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    batch.tokens[i].copy_(next.tokens[i]);
    batch.labels[i].copy_(next.labels[i]);
  }
}

void TrainStep::Impl::watch(parallel::Pipeline::Moment moment, shape::Act act) {
  using Moment = parallel::Pipeline::Moment;
  const PartClock::Mark now = clock.mark();
  if (moment == Moment::kWaitBegins || moment == Moment::kBegins) {
    const Part computing = act == shape::Act::kForward ? Part::kForward : Part::kBackward;
    begin(moment == Moment::kBegins ? computing : Part::kCommunication);
    stretches.push_back({now, now, moment, act});
  } else {
    stretches.back().end = now;
  }
}

// Forward, backward and the optimizer compute; a wait for another stage, or for all ranks before the update, is in none of
// them. Backward ends when its gradients are averaged; what of that comes after its last computation is exposed
// communication, and so are the waits within the passes and the update.
StepTimes TrainStep::Impl::times(const Marks& at) const {
  StepTimes times;
  const auto sum = [this](const std::vector<Wait>& all) {
    std::int64_t ns = 0;
    for (const Wait& w : all) ns += clock.span_ns(w.begin, w.end);
    return ns;
  };
  const std::int64_t agreed = sum(agreements);
  std::int64_t waited = sum(waits) + agreed;
  for (const Stretch& s : stretches) {
    const std::int64_t span = clock.span_ns(s.begin, s.end);
    if (s.kind == parallel::Pipeline::Moment::kWaitBegins)
      waited += span;
    else
      (s.act == shape::Act::kForward ? times.forward_ns : times.backward_ns) += span;
  }
  times.backward_ns += clock.span_ns(stretches.back().end, at.averaged) - sum(waits_for_end);
  times.optimizer_ns = clock.span_ns(at.averaged, at.last) - agreed;
  times.step_ns = clock.span_ns(at.first, at.last);
  if (loader) times.data_ns = clock.span_ns(at.first, at.loaded);
  if (!mesh[shape::Dimension::kWorld].alone() && !pipeline.as_graphs())
    times.exposed_comm_ns = waited + clock.span_ns(at.computed, at.averaged);
  return times;
}

TrainStep::TrainStep(const Trial& t, at::Device device, const parallel::Mesh& mesh,
                     std::function<void(Part)> on_part, optim::OptimizerOptions adamw, const Given& given) {
  if (const auto sentence = unsupported(t, stands_for(device))) throw std::invalid_argument(*sentence);
  if (device.is_cpu()) keep_freed_memory();
  const bool of_gpu = stands_for(device) == at::kCUDA;
  set_fused(shape::fused_groups(t, path_on(stands_for(device))));
  if (of_gpu) at::globalContext().setAllowTF32CuBLAS(t.tf32);
  impl_ = std::make_unique<Impl>(t, device, mesh, std::move(on_part), adamw, given);
}

TrainStep::~TrainStep() = default;

StepTimes TrainStep::run(std::optional<i64> micros) {
  Impl& s = *impl_;
  if (micros) s.pipeline.set_micros(*micros);
  s.clock.restart();
  s.stretches.clear(), s.waits.clear(), s.agreements.clear(), s.waits_for_end.clear();
  s.total.zero_();
  // Each step's is the same otherwise, and graphs that are launched note none.
  if (s.trial.routing == Routing::kLearned)
    for (const auto& part : s.pipeline.parts()) part->stage.routing_load() = {};
  Impl::Marks at;
  at.first = s.clock.mark();
  s.load();
  at.loaded = s.clock.mark();
  s.times_waits = !s.pipeline.as_graphs();
  s.pipeline.run([&s](i64 micro) { return s.micro_step(micro); },
                 [&s](parallel::Pipeline::Moment moment, shape::Act act) { s.watch(moment, act); });
  s.times_waits = false;
  if (!s.mesh[shape::Dimension::kWorld].alone()) s.begin(Part::kCommunication);
  at.computed = s.clock.mark();
  s.pipeline.finish_gradients();
  at.averaged = s.clock.mark();
  s.times_waits = true;
  s.begin(Part::kOptimizer);
  const auto coefficient = s.guard.judge(s.pipeline.states());
  if (coefficient)
    for (const auto& part : s.pipeline.parts()) part->state.update(*coefficient);
  s.times_waits = false;
  if (s.pipeline.has_head()) s.loss.copy_(s.total, /*non_blocking=*/true);
  at.last = s.clock.mark();
  s.clock.wait(at.last);
  s.begin(Part::kNone);
  StepTimes times = s.times(at);
  if (s.guard.scales()) times.loss_scale = s.guard.loss_scale();
  times.skipped = !coefficient;
  if (s.trial.spec.experts > 0) {
    times.expert_load = 0;
    for (const auto& part : s.pipeline.parts())
      times.expert_load = std::max(*times.expert_load, part->stage.routing_load().worst);
  }
  if (!s.pipeline.has_head()) return times;
  times.tokens = s.batch.labelled;
  if (times.tokens > 0) times.loss = s.loss.item<double>() / static_cast<double>(times.tokens);
  return times;
}

Evaluation TrainStep::evaluate(bool scores) {
  Impl& s = *impl_;
  Trial shown = s.trial;
  shown.micro_batch_size = s.trial.eval_batch_size, shown.grad_accum = 1;
  shown.global_batch_size = shown.micro_batch_size * shown.dp;
  const Batch batch = make_batch(shown, s.device, s.mesh.place(), s.tokens);
  model::MicroBatch micro{
      batch.tokens[0], batch.labels[0], 1.0, s.total, batch.documents.empty() ? nullptr : &batch.documents[0],
      batch.holes,     batch.weight};
  if (!batch.sources.empty()) micro.sources = batch.sources[0];
  std::optional<TextScorer> scorer;
  if (s.trial.eval_metrics == EvalMetrics::kNgram && s.pipeline.has_head()) {
    micro.predictions = at::empty_like(micro.labels);
    if (scores && !s.device.is_meta() && s.mesh.place().tp == 0)
      scorer.emplace(s.mesh[shape::Dimension::kData], s.device);
  }
  const std::vector<std::int64_t> ends = ends_of(micro, s.trial.seq_len);
  const i64 batches = s.device.is_meta() ? 1 : s.trial.eval_batches;
  for (const auto& part : s.pipeline.parts()) part->state.begin_step();  // frees the last step's gradients
  s.clock.restart(), s.total.zero_();
  const PartClock::Mark first = s.clock.mark();
  for (i64 i = 0; i < batches; ++i) {
    s.pipeline.evaluate(micro, [&s](bool waits) { s.begin(waits ? Part::kCommunication : Part::kForward); });
    if (scorer) scorer->add(micro.predictions, micro.labels, ends);
  }
  Evaluation out;
  if (scorer) out.text = scorer->finish([&s] { s.begin(Part::kNone); });
  if (s.pipeline.has_head()) s.loss.copy_(s.total, /*non_blocking=*/true);
  const PartClock::Mark last = s.clock.mark();
  s.clock.wait(last);
  out.ns = s.clock.span_ns(first, last);
  if (s.pipeline.has_head()) out.tokens = batches * batch.labelled;
  if (out.tokens > 0) out.loss = s.loss.item<double>() / static_cast<double>(out.tokens);
  return out;
}

std::vector<TrainStep::Tensor> TrainStep::tensors() {
  std::vector<Tensor> all;
  for (const auto& part : impl_->pipeline.parts()) {
    const auto& stacks = part->stage.parameters().stacks();
    for (auto& whole : part->state.whole_tensors()) {
      const auto& stack = stacks[whole.named.stack];
      all.push_back({whole.named.name, stack.parts[whole.named.part].slice, stack.role,
                     std::move(whole.value), std::move(whole.gradient)});
    }
  }
  return all;
}

std::vector<const parallel::ModelState*> TrainStep::states() const {
  return impl_->pipeline.states();
}

EffectiveSettings TrainStep::effective() const {
  EffectiveSettings out;
  const Impl& s = *impl_;
  out.attention = to_string(shape::attention_kind(s.trial, path_on(stands_for(s.device))));
  out.optimizer = to_string(impl_->trial.optimizer);
  out.precision = to_string(impl_->trial.precision);
  return out;
}

}  // namespace sweep::step
