#include "orchestrator/predict/step_cost.h"

#include "bench_kernels/shape/count.h"
#include "orchestrator/predict/cost/exchange_cost.h"
#include "orchestrator/predict/cost/pipeline_cost.h"
#include "orchestrator/predict/cost/update_cost.h"

namespace sweep::predict {
namespace {

// With adapters these alone are trained.
StepParameters parameters_of(const CostCase& c) {
  const Trial& t = c.trial;
  const double split = c.tp * real(t.pp), of_experts = c.expert_parameters() / split;
  const RankParameters model{real(shape::parameter_count(t.spec)) / split - of_experts, of_experts};
  if (!c.adapters.any()) return {model, {}};
  return {{real(shape::adapter_parameter_count(t)) / split, 0}, model};
}

}  // namespace

StepCost step_cost(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h,
                   const shape::KernelChoice& kernels) {
  const CostCase c(t, p, h, kernels);
  const ExchangeCost exchanges(c);
  const StepParameters parameters = parameters_of(c);
  const PipelineCost passes = pipeline_cost(c, t.pp > 1 ? exchanges.message() : 0);
  const UpdateCost update = update_cost(c, parameters);
  StepCost out;
  out.compute_s = passes.compute_s, out.pipeline_s = passes.pipeline_s;
  out.tensor_s = exchanges.tensor(), out.context_s = exchanges.context(), out.expert_s = exchanges.experts();
  out.data_parallel_s = exchanges.data_parallel(parameters, out.compute_s);
  out.optimizer_s = update.optimizer_s, out.offload_s = update.offload_s;
  out.step_s = out.compute_s + out.pipeline_s + out.tensor_s + out.context_s + out.expert_s +
               out.data_parallel_s + out.optimizer_s + out.offload_s;
  return out;
}

StepCost step_cost(const Trial& t, const shape::HardwareProfile& p, const shape::Hardware& h) {
  return step_cost(t, p, h, shape::kernel_choice(t));
}

}  // namespace sweep::predict
