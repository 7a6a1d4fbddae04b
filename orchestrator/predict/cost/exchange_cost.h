// ExchangeCost: the time of the exchanges between ranks in a step: of tensor, context, expert and data parallelism, and a
// message of the pipeline.
#pragma once
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/split_traffic.h"
#include "orchestrator/predict/cost/cost_case.h"

namespace sweep::predict {

class ExchangeCost {
 public:
  // The case outlives it.
  explicit ExchangeCost(const CostCase&);

  double tensor() const;
  double context() const;
  double experts() const;
  // Seconds that the step waits for it, beside `computing` seconds of passes.
  double data_parallel(const StepParameters&, double computing) const;
  // From one stage to the next.
  double message() const;

 private:
  // What a rank sends for gradients and weights in a step, and how often the last stage, which does so most often, gathers
  // the weights.
  struct OfStates {
    shape::StateTraffic sent;
    double gathers = 0;
  };
  OfStates of_states(const StepParameters&, double table) const;
  // `bytes` are those on the wire, as the bus bandwidth counts them; `span`: ranks from the group's first to its last.
  double wire(const char* kind, double calls, double bytes, double ranks, double span) const;
  double wire(const char* kind, const shape::Volume& v, i64 ranks, i64 span) const {
    return v.calls > 0 ? wire(kind, real(v.calls), real(v.bytes), real(ranks), real(span)) : 0;
  }
  // An exchange of the residual stream.
  double of_stream(const char* kind, const shape::Volume&) const;
  double on_rank(const RankParameters& n) const { return n.dense + n.experts / real(c_.trial.ep); }

  const CostCase& c_;
  const char* backend_;
};

}  // namespace sweep::predict
