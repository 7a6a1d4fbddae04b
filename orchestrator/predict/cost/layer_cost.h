// LayerCost: the kernels of one layer for a micro-batch on a rank: products, attention, experts, what lies beside products,
// and what recomputation and offloading make of them. And those of an encoder, and of the head with the loss.
#pragma once
#include "orchestrator/predict/cost/product_cost.h"

namespace sweep::predict {

class LayerCost {
 public:
  // The case outlives it.
  explicit LayerCost(const CostCase&);

  Pass layer(bool has_experts) const;
  // An encoder's own layers, and cross-attention in the decoder's; nothing where the model has none.
  Pass encoder() const;
  Pass head() const;
  // With the launches, which the host does one after another: on a processor each takes its time, a GPU works meanwhile.
  Pass waited(const Pass&) const;

 private:
  // The same of rows that see others: those of an encoder.
  LayerCost(const CostCase&, double keys, double columns_of_scores);

  Pass of_work(const shape::PassWork&) const;
  Pass inner_attention() const;  // scores, and what they make of the values
  Pass experts() const;
  Pass dequantized() const;  // kernels that make a quantized layer's values, once in each pass
  Pass beside_products(double mlp) const;
  Pass cross_attention() const;
  shape::LayerColumns columns(double mlp) const;
  double kept_columns(double mlp) const;  // columns of a token that a layer keeps from forward to backward

  const CostCase& c_;
  const shape::MatmulCost* dense_;   // what a product of the dense layers costs
  const shape::MatmulCost* halves_;  // what fp8 leaves in 16 bits: attention and the head
  ProductCost products_;
  double keys_;               // keys whose scores are computed for a query, on average
  double columns_of_scores_;  // columns of scores, where these are kept in memory
};

}  // namespace sweep::predict
