// The time that the passes of a step take, micro-batch after micro-batch through the stages of a pipeline.
#pragma once
#include "orchestrator/predict/cost/layer_cost.h"

namespace sweep::predict {

struct PipelineCost {
  double compute_s = 0;   // of the slowest rank
  double pipeline_s = 0;  // what the walk through the schedule adds: fill, drain, messages
};
// `message`: seconds from one stage to the next.
PipelineCost pipeline_cost(const CostCase&, double message);

}  // namespace sweep::predict
