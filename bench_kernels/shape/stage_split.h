// The split of a model into pipeline stages: which layers each virtual stage computes. Contiguous, balanced
// by cost or as the axis stage_layers lists them, at least one layer each; the embedding is on the first stage
// and the head on the last. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/model_spec.h"
#include "schema/trial.h"

namespace sweep::shape {

struct StageShare {
  i64 first_layer = 0, layers = 0;
  bool embedding = false, head = false;
  i64 dense_layers = 0;  // how many of its first layers have a dense MLP, in a model with experts
};

// The slowest stage sets the pace, so the most expensive one is as cheap as it can be: layers go one by one
// to the stage that multiplies least per token (its layers with their attention, and the head); of equals to
// the one with fewer parameters (the embedding counts here), then to the latest, which holds the fewest
// micro-batches. REQUIRES: 1 <= stages <= layers.
std::vector<StageShare> split_stages(const ModelSpec&, i64 stages, i64 seq_len);
// The same, or as the trial lists the layers of its stages. REQUIRES: pipeline_objection() has none.
std::vector<StageShare> split_stages(const Trial&, i64 stages);

// Why the trial's pipeline (pp, vpp, schedule, stage_layers, grad_accum), or its recomputation, cannot be: a sentence with
// the numbers.
std::optional<std::string> pipeline_objection(const Trial&);
std::optional<std::string> recompute_objection(const Trial&);

// Messages that a rank of the pipeline sends in one step: for each chunk and micro-batch the activations to
// the next stage and their gradient to the previous one, [micro_batch_size x seq_len / cp, hidden_size] each;
// under sequence parallelism a tensor-parallel rank holds, and sends, its share of the rows (Korthikanti et
// al. 2022).
struct PipelineTraffic {
  i64 sends = 0, receives = 0, bytes = 0;
};
PipelineTraffic pipeline_traffic(const Trial&, i64 pipeline_rank);

// The split of a model into pipeline stages by the cost of its blocks, as nanotron makes it: blocks in order
// (embedding, layers, final norm, head, cast, loss); a stage is full once the cost so far reaches its share
// of the total. Only layers and the head cost something. (Where both are equal its code of January 2025 adds
// one layer more; memory measured on the Ultra-Scale Playbook's cluster says that it did not.) A stage may
// stay empty, and the loss may stand on another stage than the head.
struct CostShare {
  i64 layers = 0;
  bool embedding = false, head = false, loss = false;
  bool empty() const { return layers == 0 && !embedding && !head && !loss && !other; }
  bool other = false;  // final norm or cast
};

// Fills `out` with one share per stage. REQUIRES: stages >= 1.
void split_by_cost(const ModelSpec&, i64 stages, std::vector<CostShare>& out);

}  // namespace sweep::shape
