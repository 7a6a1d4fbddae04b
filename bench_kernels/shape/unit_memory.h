// Models what the units of a model hold in memory, and for how long: the allocations of their forward and
// backward in order, as bench_kernels/model and kernels make them. A unit that allocates otherwise must say
// so here: the dry run of the step is compared with this (tests/parity, memory_accuracy).
#pragma once
#include "bench_kernels/shape/memory_parts.h"
#include "bench_kernels/shape/step_sizes.h"

namespace sweep::shape {

// Elements of the weights that a rank holds of one layer, and of the ends.
struct UnitWeights {
  double query_key_value = 0, attention_out = 0, in = 0, down = 0, router = 0, table = 0, positions = 0;
  double latents = 0, query_up = 0, key_value_up = 0;  // weights of latent attention
  double dense_in = 0, dense_down = 0, shared_in = 0, shared_down = 0;
  // Elements of both matrices of the adapters beside them.
  double query_key_value_adapters = 0, attention_out_adapters = 0, in_adapters = 0, down_adapters = 0;
  double latents_adapters = 0, query_up_adapters = 0, key_value_up_adapters = 0;
};

struct UnitMemory {
  PartBytes saved;     // bytes kept from forward to backward, the unit's input included
  PartBytes forward;   // bytes at the fullest moment of the forward, what it saves included
  PartBytes backward;  // the same of the backward, with the gradient that comes in
  PartBytes leaving;   // experts: the same of the backward after their gradients are made and leave
  // zero_bubble: from the backward to the making of weight gradients, and at the fullest moment of that.
  PartBytes later, weights;
};
UnitMemory attention_memory(const StepSizes&, const UnitWeights&, bool rope);
UnitMemory mlp_memory(const StepSizes&, const UnitWeights&);
// The MLP of a layer without experts, in a model that has them.
UnitMemory dense_mlp_memory(const StepSizes&, const UnitWeights&);
UnitMemory experts_memory(const StepSizes&, const UnitWeights&);
UnitMemory embedding_memory(const StepSizes&, const UnitWeights&);
// Cross-attention, by the decoder's sizes. first: the layer whose backward comes first makes room for the gradient
// of the encoder's result, which else is there.
UnitMemory cross_attention_memory(const StepSizes&, const UnitWeights&, bool first);
// The encoder's last norm with the decoder's embedding; the gradient of the encoder's result comes in beside it.
UnitMemory encoder_end_memory(const StepSizes&, const UnitWeights&);
UnitMemory head_memory(const StepSizes&, const UnitWeights&);
// Memory at the fullest moment of an evaluation: the norm, or the loss of a chunk of the rows, when the norm's input is gone.
PartBytes evaluated_head_memory(const StepSizes&);

// Steps that several units take.
namespace moments {
inline constexpr MemoryPart kKept = MemoryPart::kActivations, kBuffer = MemoryPart::kBuffers,
                            kPassing = MemoryPart::kTemporary;
// A unit's forward pass, then its backward beside what the forward saved: each is called with the moments to
// fill.
template <class Forward, class Backward>
UnitMemory of_passes(const Forward& forward, const Backward& backward) {
  UnitMemory out;
  Moments m;
  forward(m);
  out.saved = m.now(), out.forward = m.top();
  Moments back;
  back.take(kKept, out.saved.total());
  backward(back);
  out.backward = back.top();
  return out;
}
void norm(const StepSizes&, Moments&);           // h and the statistics are kept
void norm_backward(const StepSizes&, Moments&);  // its result takes the place of h
// A norm of a half's result, where there is one: the result is kept, beside what the norm gives for a moment. Its
// backward ends that; the gradient which it makes stays until end_post_norm_backward().
void post_norm(const StepSizes&, Moments&);
void post_norm_backward(const StepSizes&, Moments&);
void end_post_norm_backward(const StepSizes&, Moments&);
// Temporaries of the backward of a norm over so many rows.
double norm_gradients(const StepSizes&, double rows, double columns);
// Relative positions' backward: the gradient of what is added to the scores, on a GPU beside a copy with longer rows.
double bias_backward(const StepSizes&);
// Rows that tensor-parallel ranks exchange under sequence parallelism.
double gathered_rows(const StepSizes&);
double scattered_rows(const StepSizes&);
// Temporaries of a product a x b on fp8 units, by the elements of its factors; 0 in other precisions.
double factors(const StepSizes&, double left, double right, double added = 0);
// A quantized weight's values while a product reads them; 0: they are there.
double dequantized(const StepSizes&, double elements);
double statistics(const StepSizes&);
double angles(const StepSizes&);       // rotary tables by position, and those of packed rows
double micro_batch(const StepSizes&);  // tokens and labels; of packed rows places and ends
// Tables of which expert takes which row: one for each layer if routing is learned, else one for all.
double routes(const StepSizes&);
// Room for a weight's gradient in the values' type, before it is added to one of another type.
double staged(const StepSizes&, double elements);
// The same room as staged(), for a gradient that a product makes.
double staged_product(const StepSizes&, double elements);
// The same room for a layer's product: the weight's gradient, or the adapters' where the weight is frozen.
double staged_product(const StepSizes&, double weight, double adapters);
// Rows that the weights' part of a column-parallel layer gathers again: it reads them if something is trained.
double regathered_rows(const StepSizes&, double low_columns);
}  // namespace moments

}  // namespace sweep::shape
