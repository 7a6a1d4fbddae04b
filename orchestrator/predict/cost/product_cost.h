// ProductCost: matrix products of a model's layers, each with those of its gradients.
#pragma once
#include "orchestrator/predict/cost/cost_case.h"
#include "orchestrator/predict/cost/pass.h"

namespace sweep::predict {

class ProductCost {
 public:
  // `cost`: of a product in some precision; null: nothing says what it costs, and it counts nothing. The case outlives it.
  ProductCost(const CostCase& c, const shape::MatmulCost* cost) : c_(c), cost_(cost) {}

  // A product of a linear layer and, backward, those of its two gradients; of a frozen weight only that of the input.
  Pass linear(double m, double n, double k) const;
  // To queries, keys and values, and from the heads.
  Pass attention() const;
  Pass mlp(double rows, double width) const;
  // The low-rank adapters of a layer.
  Pass adapters() const;

 private:
  double seconds(double m, double n, double k) const { return cost_ ? cost_->seconds(m, n, k) : 0; }
  // So many adapters that read rows of `in` columns and give `out` in all.
  Pass adapter(double count, double in, double out) const;

  const CostCase& c_;
  const shape::MatmulCost* cost_;
};

}  // namespace sweep::predict
