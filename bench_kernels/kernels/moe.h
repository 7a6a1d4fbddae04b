// The operations of a mixture-of-experts layer that are not products: choosing experts, moving rows, weighing
// them. Each writes into tensors its caller allocated, so that what a step holds is the same on every device;
// on meta tensors nothing runs. Temporaries on the CPU are scratch. Nothing here waits for the device.
//
// T tokens, E experts, k choices a token; a choice is numbered token * k + j. No two rows are added by index:
// rows go to the places of their choices, and a token's are summed there in order, in the accumulation type.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sweep::kernels {

// How a router scores experts and weighs those it chose: Mixtral's by default (Jiang et al. 2024), DeepSeek's otherwise
// (V2, arXiv 2405.04434, section 2.2; V3, arXiv 2412.19437, section 2.1.2).
struct Gate {
  bool sigmoid = false;    // probabilities are sigmoids of the logits; else a softmax
  bool normalized = true;  // a token's weights add up to `scale`; else they are probabilities times it
  double scale = 1;
  // Only experts of a token's best groups are chosen; 0: any. A group's score is its best probability (plus bias); with
  // sigmoids the sum of its two best.
  std::int64_t groups = 0, groups_per_token = 0;
};

// The fused kernels of a device for what follows (Fused::kMlp) run on it, else library operators.
bool has_expert_kernels(const at::Tensor& t);

// probs [T, E] in the accumulation type, from the logits.
void router_probabilities(const at::Tensor& logits, const at::Tensor& probs, const Gate& = {});
// experts int64 [T, k]: the k most probable of each token, by probability plus bias [E] (undefined: none).
void choose_experts(const at::Tensor& probs, const at::Tensor& experts, const Gate& = {},
                    const at::Tensor& bias = {});
// Both of what is above where the experts are known beforehand: one kernel.
void router(const at::Tensor& logits, const at::Tensor& probs, const at::Tensor& experts,
            const at::Tensor& weights, const Gate& = {});
// weights [T, k] of the chosen experts, without the bias.
void router_weights(const at::Tensor& probs, const at::Tensor& experts, const at::Tensor& weights,
                    const Gate& = {});
// dlogits [T, E] from dweights [T, k] and, when defined, dprobs [E] (the same for every token: the auxiliary
// loss).
void router_backward(const at::Tensor& probs, const at::Tensor& experts, const at::Tensor& weights,
                     const at::Tensor& dweights, const at::Tensor& dprobs, const at::Tensor& dlogits,
                     const Gate& = {});

// counts int64 [E]: how many choices each expert has.
void count_choices(const at::Tensor& experts, const at::Tensor& counts);
// ends int32 [E]: where an expert's choices end, when they are sorted.
void end_choices(const at::Tensor& counts, const at::Tensor& ends);
// order [n]: the choices sorted by expert, within an expert by token, of each expert's chosen[expert] only the
// first kept[expert]; n is the sum of kept. The caller has both counts, so the device is not waited for.
void order_choices(const at::Tensor& experts, const std::vector<std::int64_t>& chosen,
                   const std::vector<std::int64_t>& kept, const at::Tensor& order);

// to[i] = from[index[i]].
void gather_rows(const at::Tensor& from, const at::Tensor& index, const at::Tensor& to);
// to[index[i]] = from[i]; no index is there twice. Rows of `to` that none names become zero.
void place_rows(const at::Tensor& from, const at::Tensor& index, const at::Tensor& to);
// rows[i] *= weights.flat[order[i]].
void scale_rows(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& order);
// Places of the rows of a rank's choices when they are sent: `order` as above, the tokens of its choices, and the
// reverse: places int64 [T * k] of each choice in that order, -1: not served.
struct Choices {
  at::Tensor order, tokens, places;
};
// rows [n, width] in sending order (moved here; elsewhere they are freed as early as they can be): the result [T, width]
// is base (absent where undefined) + the weighted sum of each token's choices. `kept` is what the backward needs.
at::Tensor combine(at::Tensor rows, const Choices&, const at::Tensor& weights, const at::Tensor& base,
                   at::Tensor& kept);
// dweights [T, k], and the gradient of the rows, from that of the sum.
at::Tensor combine_backward(const at::Tensor& grad, const Choices&, at::Tensor kept,
                            const at::Tensor& weights, const at::Tensor& dweights);
// The sum of each of `tokens` tokens' choices, of rows in sending order.
at::Tensor sum_sent(at::Tensor rows, const Choices&, std::int64_t tokens);

// Rows of all choices [T * k, n]: to[t] = base[t] (absent where undefined) + sum over j of weights[t, j] times
// its row.
void weighted_sum(const at::Tensor& rows, const at::Tensor& weights, const at::Tensor& base,
                  const at::Tensor& to);
// to[t] = sum over j.
void sum_choices(const at::Tensor& rows, const at::Tensor& to);
// dweights[t, j] = dot(grad[t], rows[t * k + j]).
void weight_gradients(const at::Tensor& grad, const at::Tensor& rows, const at::Tensor& dweights);

}  // namespace sweep::kernels
