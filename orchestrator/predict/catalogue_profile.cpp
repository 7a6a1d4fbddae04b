// The profile of hardware that nobody measured: what its data sheet says, at a share that steps reach. And what axes
// beside those of a fit make of a step there.
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "orchestrator/predict/step_cost.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {
namespace {

// A CPU thread in fp32, kept low on purpose. One thread of an AMD EPYC (AVX2) running linear layers forward
// and backward in PyTorch 2.11: 28 GFLOP/s at width 64 and 64 tokens, 55 at 256 tokens, 86-94 at width 256
// and more.
constexpr double kCpuThreadFlops = 20e9;
constexpr double kCpuLaunch = 1e-6;
// Share of a GPU's peak that products reach: as the profile of our step has it.
constexpr double kGpuShare = 0.53;

// Collectives as the profile of our step has them, of nodes of H100, in proportion to the links.
void add_links(shape::HardwareProfile& p, const shape::Hardware& h) {
  constexpr double kLatency = 20e-6;
  const LinkTable& measured = built_in_profile("sweep")->links;
  const shape::Hardware& of = *shape::known_hardware(built_in_profile("sweep")->hardware);
  for (std::size_t i = 0; i < measured.nodes.size(); ++i) {
    const bool inside = measured.nodes[i] <= 1;
    const double share = inside ? h.intra_node_bandwidth / of.intra_node_bandwidth
                                : h.inter_node_bandwidth / of.inter_node_bandwidth;
    const auto add = [&](const char* kind, double bandwidth) {
      p.links.push_back({kind, "nccl", 2, std::llround(measured.nodes[i]), kLatency, bandwidth * share, 0});
    };
    add("all_reduce", measured.all_reduce[i]);
    add("all_gather", measured.all_gather[i]);
    add("reduce_scatter", measured.all_gather[i]);
  }
}

}  // namespace

shape::HardwareProfile catalogue_profile(const shape::Hardware& h) {
  shape::HardwareProfile p;
  p.name = p.hardware = h.name;
  const bool on_cpu = h.gpu.empty();
  p.launch_s = on_cpu ? kCpuLaunch : kGpuLaunch;
  const double memory = h.memory_bandwidth * (on_cpu ? 1 : kGpuMemory);
  if (!on_cpu) add_links(p, h);
  if (!on_cpu) p.copies.push_back({i64{1} << 30, static_cast<double>(i64{1} << 30) / memory});
  for (const auto& [precision, flops] : h.peak_flops)
    p.products.push_back({precision, on_cpu ? 0 : kGpuKernel, flops * kGpuShare, memory,
                          precision.ends_with("32") ? 4.0 : 2.0, 0});
  if (on_cpu)  // casts below fp32
    for (const auto& [precision, share] : {std::pair("fp32", 1.0), std::pair("bf16", 0.5)})
      p.products.push_back({precision, 0, kCpuThreadFlops * share, h.memory_bandwidth, share * 4, 0});
  return p;
}

namespace {

// The profile is of training with fp32 masters and moments beside 16 bits.
Precision fitted_precision(Precision p) {
  if (p == Precision::kFp32 || p == Precision::kFp16) return p;
  return p == Precision::kFp16Amp ? Precision::kFp16 : Precision::kBf16Master;
}

}  // namespace

bool is_fitted(const Trial& t, const Trial& fitted) {
  return shape::is_default(shape::kernel_choice(t)) && fitted == t;
}

Trial fitted_part(Trial out) {
  static const Trial defaults;
  out.lora_rank = 0, out.quantize_base = QuantizeBase::kNone, out.activation_offload = false;
  out.optimizer = OptimizerKind::kFused, out.offload = Offload::kNone;
  out.spec.encoder_layers = 0, out.encoder_seq_len = defaults.encoder_seq_len;
  out.precision = fitted_precision(out.precision), out.grad_dtype = defaults.grad_dtype;
  out.grad_clip = defaults.grad_clip, out.routing = defaults.routing, out.attention = defaults.attention;
  out.reshard_after_forward = defaults.reshard_after_forward, out.grad_bucket_mb = defaults.grad_bucket_mb;
  out.prefetch_forward = defaults.prefetch_forward, out.prefetch_backward = defaults.prefetch_backward;
  out.backward_prefetch = defaults.backward_prefetch;
  out.sp = out.tp > 1, out.tp_overlap = false, out.cp_comm_type = defaults.cp_comm_type;
  if (out.recompute == Recompute::kSelective) out.recompute = Recompute::kNone;
  return out;
}

namespace {

// The figures of hardware that catalogue_profile() and step_cost() read.
auto read_of(const shape::Hardware& h) {
  return std::tie(h.name, h.gpu, h.linked_gpus, h.memory_bandwidth, h.intra_node_bandwidth,
                  h.inter_node_bandwidth, h.peak_flops);
}

// Trials of a plan mostly share their hardware, and neighbours their fitted part: the last answers are kept.
const shape::HardwareProfile& figures_of(const shape::Hardware& h) {
  thread_local std::optional<std::pair<shape::Hardware, shape::HardwareProfile>> last;
  if (!last || read_of(last->first) != read_of(h)) last.emplace(h, catalogue_profile(h));
  return last->second;
}

double seconds_of_fitted(const Trial& fitted, const shape::Hardware& h) {
  struct Answer {
    Trial fitted;
    shape::Hardware hardware;
    double step_s;
  };
  thread_local std::optional<Answer> last;
  if (!last || last->fitted != fitted || read_of(last->hardware) != read_of(h))
    last = Answer{fitted, h, step_cost(fitted, figures_of(h), h, {}).step_s};
  return last->step_s;
}

double seconds_by_values(const Trial& t, const shape::Hardware& h) {
  const auto kernels = shape::kernel_choice(t);
  if (t.quantize_base == QuantizeBase::kNone) return step_cost(t, figures_of(h), h, kernels).step_s;
  Trial by_values = t;
  by_values.quantize_base = QuantizeBase::kNone;
  return step_cost(by_values, figures_of(h), h, kernels).step_s;
}

}  // namespace

double beyond_fitted(const Trial& t, const Trial& fitted, const shape::Hardware& h) {
  return seconds_by_values(t, h) / seconds_of_fitted(fitted, h);
}

}  // namespace sweep::predict
