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
  // The ranks and how they share the model.
  struct Ranks {
    double nodes = 1, gpus_per_node = 8, dp = 1, tp = 1, pp = 1, cp = 1, ep = 1, zero = 0;
    double shard = 1;          // ranks that ZeRO divides a state over
    bool tp_overlap = false;   // tp's exchanges go beside the products, in pieces
    bool whole_norms = false;  // tp without sequence parallelism: norms and residuals are of all tokens
  };
  struct Batch {
    double micros = 1, micro_batch = 1;
    double sequence = 0, tokens = 0;  // tokens of a micro-batch on one rank
    double keys = 0;                  // keys that a query sees, on average
  };
  struct Model {
    double hidden = 0, heads = 0, kv_heads = 0, width = 0, kv_width = 0, intermediate = 0, vocab = 0;
    double wide = 0;  // columns of the MLPs that a token meets
    double layers = 0, parameters = 0;
    double layer_parameters = 0, active_parameters = 0;  // parameters of one layer; those that a token passes
    bool gated = true;                                   // the MLP
    bool normed_heads = false;                           // queries and keys pass a norm of their own
    bool tied = false;
  };
  struct Experts {
    bool used = false, bias = false;
    double top_k = 1;                        // experts of a token; 1 without experts
    double here = 0;                         // routed experts of a layer on one rank
    double parameters = 0;                   // parameters of one routed expert
    double elsewhere = 0;                    // parameters of a layer's experts that other ranks have (ep)
    double groups = 0, groups_of_token = 0;  // ModelSpec's numbers; 0: a token may go to any expert
  };
  // The types of numbers.
  struct Types {
    Precision precision = Precision::kFp32;
    bool tf32 = false, fp32 = false, fp8 = false, bf16_gradients = false;
    bool casts = false;        // weights are kept in another type than the one that computes
    double element = 2;        // bytes of an activation
    shape::StateBytes states;  // bytes of a parameter on a rank, as the precision wants them
  };
  // The model under adapters.
  struct Base {
    bool frozen = false;     // adapters alone are trained
    double dequantized = 0;  // weights of a layer that a micro-batch makes of their codes, in all its passes
    double code_bytes = 0;   // bytes of quantized weights on one rank
  };
  // The passes: how much forward keeps, and how much backward makes again.
  struct Passes {
    bool recompute = false, selective = false, math_attention = false;
    bool written_out = false;  // attention's scores pass through memory
  };
  Ranks ranks;
  Batch batch;
  Model model;
  Experts experts;
  Types types;
  Base base;
  Passes passes;
  shape::Pipeline pipeline;
  std::vector<StageWork> stages;
  SeenEffects seen;  // effects of the profile's cluster, if the trial's hardware is the same
};

// The parameters of a stage that are kept as codes.
inline double codes_of(const Layout& l, const StageWork& s) {
  return l.base.code_bytes > 0 ? s.layers * l.model.layer_parameters / l.ranks.tp : 0;
}

// REQUIRES: degrees >= 1 and a completed model. Reuses the memory of `out`.
void make_layout(const Trial&, const TrainerProfile&, Layout& out);

}  // namespace sweep::predict
