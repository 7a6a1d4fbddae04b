// CostModel: the cost of one trial on one profile, part by part. Private to step_cost.cpp and exchange_cost.cpp.
#pragma once

#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/kernel_work.h"
#include "bench_kernels/shape/split_traffic.h"
#include "orchestrator/predict/layout.h"
#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {

// Bytes per second between a GPU and pinned host memory: assumed, of the 31.5 GB/s of PCIe 4.0's standard (16 lanes).
inline constexpr double kHostLink = 25e9;

class CostModel {
 public:
  CostModel(const Trial&, const shape::HardwareProfile&, const shape::Hardware&, const shape::KernelChoice&);

  StepCost cost();

 private:
  // Time of kernels, and how many are launched.
  struct Pass {
    double forward = 0, backward = 0, forward_launches = 0, backward_launches = 0;
    Pass& operator+=(const Pass&);
    Pass times(double) const;
    void recompute() { backward += forward, backward_launches += forward_launches; }
  };
  // Parameters of a stage and tensor-parallel rank: those that every rank of ep has, and the experts of all of them.
  struct Numbers {
    double dense = 0, experts = 0;
  };
  double on_rank(const Numbers& n) const { return n.dense + n.experts / real(t_.ep); }
  double product(double m, double n, double k) const { return product_ ? product_->seconds(m, n, k) : 0; }
  // A product and, backward, those of its two gradients; of a frozen weight only that of the input.
  Pass linear(double m, double n, double k) const;
  // So many adapters that read rows of `in` columns and give `out` in all.
  void adapt(Pass& pass, double count, double in, double out) const;
  Pass adapters() const;
  double quantized() const;  // weights of a layer that are kept as codes
  Pass dequantized() const;  // kernels that make their values, once in each pass
  double memory(double bytes) const;
  double wire(const char* kind, double calls, double bytes, double ranks, double span) const;
  double wire(const char* kind, const shape::Volume& v, i64 ranks, i64 span) const {
    return v.calls > 0 ? wire(kind, real(v.calls), real(v.bytes), real(ranks), real(span)) : 0;
  }
  double gates() const { return t_.spec.swiglu ? 2 : 1; }
  // MLPs of a layer on a rank: its experts, or one.
  double mlps() const { return t_.spec.experts > 0 ? real(t_.spec.experts) / real(t_.ep) : 1; }
  bool on_gpu() const { return !h_.gpu.empty(); }
  // Launched by the host one after another: on a processor each takes its time, a GPU works meanwhile.
  Pass waited(const Pass&) const;
  Pass of_work(const shape::PassWork&) const;
  Pass attention() const;
  Pass inner_attention() const;
  Pass attention_products() const;
  Pass mlp(double rows, double width) const;
  Pass experts_mlp() const;
  double expert_parameters() const;  // of the routed experts of the whole model
  shape::LayerColumns columns(double mlp) const;
  double kept_columns(double mlp) const;  // columns of a token that a layer keeps from forward to backward
  Pass beside_products(double mlp) const;
  Pass layer(bool has_experts) const;
  Pass cross_attention() const;
  Pass encoder() const;
  Pass head() const;
  double expert_load() const;
  double tensor() const;
  double context() const;
  double experts() const;
  double message() const {
    return wire("send", 1, tokens_ * hidden_ * element_ / (t_.sp ? tp_ : 1), 2, t_.world());
  }
  // computing: seconds of the passes beside which it may run
  double data_parallel(const Numbers& trained, const Numbers& frozen, double computing) const;
  void stages(StepCost&) const;
  void optimizer(const Numbers& trained, const Numbers& frozen, StepCost&) const;

  const Trial& t_;
  const shape::HardwareProfile& p_;
  const shape::Hardware& h_;
  const ProfileFacts& facts_;
  const char* backend_;
  const shape::MatmulCost* product_;  // cost of a product of the dense layers
  const shape::MatmulCost* half_;     // cost of what fp8 leaves in 16 bits: attention and the head
  shape::Adapters adapters_;
  shape::KernelChoice kernels_;
  double tp_ = 1, element_ = 4, tokens_ = 0, hidden_ = 0, width_ = 0, kv_width_ = 0, intermediate_ = 0;
  double keys_ = 0;               // keys whose scores are computed for a query, on average
  double columns_of_scores_ = 0;  // columns of scores, where these are kept in memory
};

}  // namespace sweep::predict
