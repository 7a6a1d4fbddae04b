#include "orchestrator/predict/cost/pipeline_cost.h"

#include <algorithm>
#include <vector>

#include "bench_kernels/shape/pipeline_time.h"
#include "bench_kernels/shape/stage_split.h"

namespace sweep::predict {
namespace {

// What stages are made of, for one micro-batch.
class Stages {
 public:
  explicit Stages(const CostCase& c)
      : layers_(c),
        each_(layers_.layer(c.trial.spec.experts > 0)),
        dense_(c.trial.spec.experts > 0 && c.trial.spec.dense_layers > 0 ? layers_.layer(false) : each_),
        head_(layers_.head()) {}

  // So many layers, of them the first without experts.
  Pass of(i64 layers, i64 first, bool has_head) const {
    Pass sum = each_.times(real(layers) - real(first));
    sum += dense_.times(real(first));
    if (has_head) sum += head_;
    return sum;
  }
  Pass encoder() const { return layers_.encoder(); }
  shape::StageSeconds seconds(const Pass& pass) const {
    const Pass own = layers_.waited(pass);
    return {own.forward, own.backward};
  }

 private:
  LayerCost layers_;
  Pass each_, dense_, head_;
};

}  // namespace

PipelineCost pipeline_cost(const CostCase& c, double message) {
  const Trial& t = c.trial;
  const shape::Pipeline p = shape::Pipeline::of(t);
  const Stages stages(c);
  PipelineCost out;
  if (p.ranks == 1) {
    Pass all = stages.of(t.spec.layers, t.spec.dense_layers, true);
    const shape::StageSeconds each = stages.seconds(all += stages.encoder());
    out.compute_s = real(t.grad_accum) * (each.forward + each.backward);
    return out;
  }
  thread_local std::vector<shape::StageSeconds> seconds;
  seconds.clear();
  for (const auto& s : shape::split_stages(t, p.stages()))
    seconds.push_back(stages.seconds(stages.of(s.layers, s.dense_layers, s.head)));
  // Messages of processors keep both ends busy: they copy.
  if (!c.on_gpu()) {
    for (auto& s : seconds) s.forward += message, s.backward += message;
    message = 0;
  }
  std::vector<double> busy(static_cast<std::size_t>(p.ranks), 0.0);
  for (i64 stage = 0; stage < p.stages(); ++stage) {
    const auto& s = seconds[static_cast<std::size_t>(stage)];
    busy[static_cast<std::size_t>(p.rank_of(stage))] += s.forward + s.backward;
  }
  out.compute_s = real(t.grad_accum) * *std::max_element(busy.begin(), busy.end());
  out.pipeline_s =
      shape::pipeline_seconds(p, {seconds.data(), static_cast<std::size_t>(p.stages())}, message) -
      out.compute_s;
  return out;
}

}  // namespace sweep::predict
