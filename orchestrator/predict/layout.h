// Layout: what the predictors read of a trial, as numbers; and its pipeline stages.
#pragma once
#include <vector>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/schedule.h"
#include "bench_kernels/shape/step_sizes.h"
#include "orchestrator/predict/effects.h"
#include "orchestrator/predict/trainer_profile.h"
#include "schema/trial.h"

namespace sweep::predict {

using shape::real;

inline constexpr double kCodeBytes = 0.516;  // bytes of a quantized weight: 4 bits, and a byte for each 64

struct StageWork {
  double layers = 0, parameters = 0, in_flight = 1;  // parameters of one tensor-parallel rank
  bool embedding = false, head = false, loss = false, empty = false;
  // `parameters` with the experts of every rank. What ZeRO shards of a rank's own experts is shared by the dp x cp / ep ranks
  // that have them: as much as all experts over dp x cp.
  double with_all_experts = 0;
  double adapters = 0;  // parameters of its adapters, where the others are frozen
};

struct Layout {
  double nodes = 1, gpus_per_node = 8, dp = 1, tp = 1, pp = 1, cp = 1, ep = 1, zero = 0, micros = 1,
         micro_batch = 1;
  double sequence = 0, tokens = 0;  // tokens of a micro-batch on one rank
  double keys = 0;                  // keys that a query sees, on average
  double hidden = 0, heads = 0, kv_heads = 0, width = 0, kv_width = 0, intermediate = 0, vocab = 0;
  double layer_parameters = 0, active_parameters = 0;  // parameters of one layer; those that a token passes
  double other_experts = 0;  // parameters of a layer's experts that other ranks have (ep)
  double dequantized = 0;    // weights of a layer that a micro-batch makes of their codes, in all its passes
  double element = 2;        // bytes of an activation
  double top_k = 1;          // experts of a token; 1 without experts
  double wide = 0;           // columns of the MLPs that a token meets
  double experts_here = 0;   // routed experts of a layer on one rank
  double expert_parameters = 0;                   // parameters of one routed expert
  double expert_groups = 0, groups_of_token = 0;  // ModelSpec's numbers; 0: a token may go to any expert
  double shard = 1;                               // ranks that ZeRO divides a state over
  double code_bytes = 0;                          // bytes of quantized weights on one rank
  Precision precision = Precision::kFp32;
  bool tf32 = false;
  double layers = 0, parameters = 0;  // numbers of the whole model
  bool gated = true;                  // the MLP
  bool has_experts = false, expert_bias = false;
  bool normed_heads = false;  // queries and keys pass a norm of their own
  bool tied = false, recompute = false, selective = false, is_fp32 = false;
  bool fp8 = false, math_attention = false, bf16_gradients = false;
  bool tp_overlap = false;   // tp's exchanges go beside the products, in pieces
  bool whole_norms = false;  // tp without sequence parallelism: norms and residuals are of all tokens
  bool frozen = false;       // adapters alone are trained
  bool written_out = false;  // attention's scores pass through memory
  bool casts = false;        // weights are kept in another type than the one that computes
  shape::StateBytes states;  // per parameter and rank, as the precision wants them
  shape::Pipeline pipeline;
  std::vector<StageWork> stages;
  SeenEffects seen;  // effects of the profile's cluster, if the trial's hardware is the same
};

// The parameters of a stage that are kept as codes.
inline double codes_of(const Layout& l, const StageWork& s) {
  return l.code_bytes > 0 ? s.layers * l.layer_parameters / l.tp : 0;
}

// REQUIRES: degrees >= 1 and a completed model. Reuses the memory of `out`.
void make_layout(const Trial&, const TrainerProfile&, Layout& out);

}  // namespace sweep::predict
