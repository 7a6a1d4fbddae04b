#include "orchestrator/predict/cost/product_cost.h"

namespace sweep::predict {

Pass ProductCost::linear(double m, double n, double k) const {
  const bool trained = !c_.adapters.any();
  const double launches = c_.on_gpu() ? 1 : 0;
  return {seconds(m, n, k), seconds(m, k, n) + (trained ? seconds(n, k, m) : 0), launches,
          launches * (trained ? 2 : 1)};
}

// Each rank of a tensor group makes the latents.
Pass ProductCost::attention() const {
  const ModelSpec& m = c_.trial.spec;
  if (!m.latent()) {
    Pass sum = linear(c_.tokens, c_.width + 2 * c_.kv_width, c_.hidden);
    return sum += linear(c_.tokens, c_.hidden, c_.width);
  }
  const double heads = real(m.heads) / c_.tp, values = heads * real(m.v_head_dim);
  Pass sum = linear(c_.tokens, real(m.q_lora_rank + m.kv_lora_rank + m.rope_head_dim), c_.hidden);
  sum += linear(c_.tokens, c_.width, m.q_lora_rank > 0 ? real(m.q_lora_rank) : c_.hidden);
  sum += linear(c_.tokens, heads * real(m.head_dim - m.rope_head_dim) + values, real(m.kv_lora_rank));
  return sum += linear(c_.tokens, c_.hidden, values);
}

Pass ProductCost::mlp(double rows, double width) const {
  Pass out = linear(rows, c_.gates() * width / c_.tp, c_.hidden);
  return out += linear(rows, c_.hidden, width / c_.tp);
}

// Forward the low rows and each adapter's part of the outputs; backward both gradients of each.
Pass ProductCost::adapter(double count, double in, double out) const {
  const double rank = real(c_.adapters.rank);
  const double products = seconds(c_.tokens, count * rank, in) + seconds(c_.tokens, out, rank);
  return {products, 2 * products, 1 + count, 2 + 2 * count};
}

Pass ProductCost::adapters() const {
  Pass sum;
  for (const shape::AdapterProducts& p : shape::adapter_products(c_.trial))
    sum += adapter(real(p.count), real(p.in) / (p.divided == shape::Divided::kInputs ? c_.tp : 1),
                   real(p.out) / (p.divided == shape::Divided::kOutputs ? c_.tp : 1));
  return sum;
}

}  // namespace sweep::predict
