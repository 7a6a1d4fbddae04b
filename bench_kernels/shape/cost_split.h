// The split of a model into pipeline stages by the cost of its blocks, as nanotron makes it: blocks in order
// (embedding, layers, final norm, head, cast, loss); a stage is full once the cost so far reaches its share
// of the total. Only layers and the head cost something. (Where both are equal its code of January 2025 adds
// one layer more; memory measured on the Ultra-Scale Playbook's cluster says that it did not.) A stage may
// stay empty, and the loss may stand on another stage than the head.
#pragma once
#include <vector>

#include "schema/model_spec.h"
#include "schema/trial.h"

namespace sweep::shape {

struct CostShare {
  i64 layers = 0;
  bool embedding = false, head = false, loss = false;
  bool empty() const { return layers == 0 && !embedding && !head && !loss && !other; }
  bool other = false;  // final norm or cast
};

// Fills `out` with one share per stage. REQUIRES: stages >= 1.
void split_by_cost(const ModelSpec&, i64 stages, std::vector<CostShare>& out);

}  // namespace sweep::shape
