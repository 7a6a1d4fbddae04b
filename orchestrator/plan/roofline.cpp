// The predictor of our own step: bytes stage by stage (memory.h); on GPUs time as `sweep predict` reckons it, under the
// profile of our step; on processors a roofline, good for order and deadlines, not for claims.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/schedule_check.h"
#include "bench_kernels/shape/split_traffic.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"
#include "orchestrator/plan/memory.h"
#include "orchestrator/plan/planner.h"
#include "orchestrator/plan/predict.h"
#include "orchestrator/plan/rules.h"

namespace sweep::plan {
namespace {

// A CPU thread in fp32, kept low on purpose. One thread of an AMD EPYC (AVX2) running linear layers forward
// and backward in PyTorch 2.11: 28 GFLOP/s at width 64 and 64 tokens, 55 at 256 tokens, 86-94 at width 256
// and more.
constexpr double kCpuThreadFlops = 20e9;
// Start-up until the first step: a forked CPU rank, a GPU rank with context and communicators.
constexpr double kCpuStartupSeconds = 0.5, kGpuStartupSeconds = 20;

double cpu_flops(const Trial& t) {
  return kCpuThreadFlops * real(t.threads) *
         (t.precision == Precision::kFp32 ? 1.0 : 0.5);  // casts below fp32
}

// Bytes to and from device memory in a step: weights and gradients in each micro-step's passes, saved
// activations written and read, and the optimizer's pass over all states.
double traffic_bytes(const Trial& t, const MemoryEstimate& m) {
  using shape::MemoryPart;
  const double weights = m.of(MemoryPart::kWeights), gradients = m.of(MemoryPart::kGradients);
  const double micro = 2 * weights + 2 * gradients + 2 * m.of(MemoryPart::kActivations);
  return real(t.grad_accum) * micro + 2 * weights + gradients + 2 * m.of(MemoryPart::kOptimizer);
}

// A ring all-reduce sends 2 (n-1)/n of its bytes from each rank; a gather or a reduce-scatter half of that.
double all_reduce_bytes(double payload, double n) {
  return 2 * (n - 1) / n * payload;
}

// Ranks are placed tp innermost, then cp, dp, pp: a group that spans nodes goes at the network's speed.
double bandwidth(const Trial& t, const shape::Hardware& h, i64 span) {
  return span <= t.gpus_per_node ? h.intra_node_bandwidth : h.inter_node_bandwidth;
}

double communication_seconds(const Trial& t, const shape::Hardware& h) {
  const double e = element_bytes(t.precision);
  const double tokens = real(t.micro_batch_size) * real(t.seq_len) / real(t.cp);
  const double activations = tokens * real(t.spec.hidden_size) * e;  // of one layer boundary
  const double layers = real(t.spec.layers) / real(t.pp), micro_steps = real(t.grad_accum);
  const double parameters = real(shape::parameter_count(t.spec)) / (real(t.tp) * real(t.pp));
  double seconds = shape::state_traffic(t, parameters).total() / bandwidth(t, h, t.tp * t.cp * t.dp);
  if (t.tp > 1)  // four all-reduces a layer: two forward, two backward (Shoeybi et al. 2019)
    seconds += micro_steps * layers * 4 * all_reduce_bytes(activations, real(t.tp)) / bandwidth(t, h, t.tp);
  const auto shared_heads = shape::key_value_traffic(t);
  seconds += real(shared_heads.all_gather.bytes + shared_heads.reduce_scatter.bytes) / bandwidth(t, h, t.tp);
  if (t.cp > 1)  // keys and values around the ring, forward, and with their gradients backward
    seconds += micro_steps * layers * 6 * (real(t.cp) - 1) * tokens *
               real(shape::kv_heads_of_rank(t) * t.spec.head_dim) * e / bandwidth(t, h, t.tp * t.cp);
  // A rank in the middle: activations forward, their gradient backward, of each chunk.
  if (t.pp > 1)
    seconds += real(shape::pipeline_traffic(t, t.pp > 2 ? 1 : 0).bytes) / bandwidth(t, h, t.world());
  return seconds;
}

// The fill and drain of a pipeline over the busy time.
double bubble(const Trial& t) {
  const double idle = shape::ideal_bubble(shape::Pipeline::of(t));
  return idle / (1 - idle);
}

double cpu_step_seconds(const Trial& t, const shape::Hardware& h, const MemoryEstimate& memory) {
  const double tokens = real(t.global_batch_size) * real(t.seq_len) / real(t.world());
  const double compute =
      tokens * shape::hardware_flops_per_token(t.spec, t.seq_len, t.recompute) / cpu_flops(t);
  const double traffic = traffic_bytes(t, memory) / h.memory_bandwidth;
  return std::max(compute, traffic) * (1 + bubble(t)) + communication_seconds(t, h);
}

double gpu_step_seconds(const Trial& t, const shape::Hardware& h) {
  thread_local Layout layout;
  thread_local StageTimes times;
  const TrainerProfile& profile = step_profile();
  make_layout(t, profile, layout);
  stage_times(layout, profile, h, times);
  return predict_time(layout, times, {}, profile, h).step_s;
}

i64 saturated(double x) {
  return x < 9e18 ? static_cast<i64>(std::llround(x)) : std::numeric_limits<i64>::max();
}

class Roofline final : public Predictor {
 public:
  // An impossible trial (rules.h) gets no prediction, but for a missing precision: its bytes are still known.
  Prediction predict(const Trial& t, const MeasurePlan& plan) const override {
    Prediction p;
    const auto objection = first_objection(t);
    if (objection && objection->rule != "precision") return p;
    const shape::Hardware* h = shape::known_hardware(t.hardware);
    const MemoryEstimate memory = estimate_memory(t);
    p.bytes = saturated(memory.total());
    if (!h->gpu.empty() && !h->peak_for(t.precision)) return p;
    const double step = h->gpu.empty() ? cpu_step_seconds(t, *h, memory) : gpu_step_seconds(t, *h);
    p.step_ms = 1e3 * step;
    const double startup = h->gpu.empty() ? kCpuStartupSeconds : kGpuStartupSeconds;
    p.seconds = startup + step * real(plan.warmup_steps + plan.steps) * real(plan.repeats);
    return p;
  }
};

}  // namespace

const Predictor& roofline() {
  static const Roofline instance;
  return instance;
}

}  // namespace sweep::plan
