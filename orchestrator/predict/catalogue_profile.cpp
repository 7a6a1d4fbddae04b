// The profile of hardware that nobody measured: what its data sheet says, at a share that steps reach. And what axes
// beside those of a fit make of a step there.
#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {
namespace {

// A CPU thread in fp32, kept low on purpose. One thread of an AMD EPYC (AVX2) running linear layers forward
// and backward in PyTorch 2.11: 28 GFLOP/s at width 64 and 64 tokens, 55 at 256 tokens, 86-94 at width 256
// and more.
constexpr double kCpuThreadFlops = 20e9;
constexpr double kCpuLaunch = 1e-6, kGpuLaunch = 5e-6, kGpuShare = 0.5;

}  // namespace

shape::HardwareProfile catalogue_profile(const shape::Hardware& h) {
  shape::HardwareProfile p;
  p.name = p.hardware = h.name;
  const bool on_cpu = h.gpu.empty();
  p.launch_s = on_cpu ? kCpuLaunch : kGpuLaunch;
  for (const auto& [precision, flops] : h.peak_flops)
    p.products.push_back(
        {precision, 0, flops * kGpuShare, h.memory_bandwidth, precision.ends_with("32") ? 4.0 : 2.0, 0});
  if (on_cpu)  // casts below fp32
    for (const auto& [precision, share] : {std::pair("fp32", 1.0), std::pair("bf16", 0.5)})
      p.products.push_back({precision, 0, kCpuThreadFlops * share, h.memory_bandwidth, share * 4, 0});
  return p;
}

bool is_fitted(const Trial& t) {
  return t.lora_rank == 0 && t.quantize_base == QuantizeBase::kNone && !t.activation_offload &&
         t.optimizer == OptimizerKind::kFused && t.offload == Offload::kNone && !t.spec.has_encoder();
}

Trial fitted_part(Trial out) {
  static const Trial defaults;
  out.lora_rank = 0, out.quantize_base = QuantizeBase::kNone, out.activation_offload = false;
  out.optimizer = OptimizerKind::kFused, out.offload = Offload::kNone;
  out.spec.encoder_layers = 0, out.encoder_seq_len = defaults.encoder_seq_len;
  return out;
}

double beyond_fitted(const Trial& t, const Trial& fitted, const shape::Hardware& h) {
  const shape::HardwareProfile figures = catalogue_profile(h);
  Trial by_values = t;
  by_values.quantize_base = QuantizeBase::kNone;
  return step_cost(by_values, figures, h).step_s / step_cost(fitted, figures, h).step_s;
}

}  // namespace sweep::predict
