// The time of the update of a rank's parameters, and of moves between the device and what is kept outside of it.
#pragma once
#include "orchestrator/predict/cost/cost_case.h"

namespace sweep::predict {

struct UpdateCost {
  double optimizer_s = 0, offload_s = 0;
};
UpdateCost update_cost(const CostCase&, const StepParameters&);

}  // namespace sweep::predict
