#include "bench_kernels/kernels/device_experts.h"

#include "bench_kernels/kernels/device_launch.h"

namespace sweep::kernels::device {
namespace {

constexpr unsigned kRouterThreads = 256;  // a warp for each token

sweep::device::RouterArgs router_args(const Routing& r, const Gate& gate) {
  sweep::device::RouterArgs args{};
  args.probs = at_of(r.probs), args.chosen = at_of(r.experts), args.weights = at_of(r.weights);
  args.tokens = r.probs.size(0), args.experts = r.probs.size(1);
  args.choices = r.experts.defined() ? r.experts.size(1) : 0;
  args.scale = gate.scale, args.sigmoid = gate.sigmoid ? 1 : 0, args.normalized = gate.normalized ? 1 : 0;
  return args;
}

void launch_router(const char* kernel, const at::Tensor& like, const sweep::device::RouterArgs& args,
                   std::int64_t bytes) {
  constexpr std::int64_t kTokens = kRouterThreads / sweep::device::kWarp;
  run(like, {kernel,
             {},
             false,
             blocks_for((args.tokens + kTokens - 1) / kTokens),
             kRouterThreads,
             0,
             &args,
             bytes});
}

// A block for each token.
void launch_combine(const char* kernel, const at::Tensor& like, const sweep::device::CombineArgs& args,
                    bool packed, std::int64_t bytes) {
  run(like, {kernel,
             {},
             packed,
             blocks_for(args.tokens),
             threads_for(packed ? args.n / pack_of(like) : args.n),
             room_of_warps(like),
             &args,
             bytes});
}

}  // namespace

void router(const at::Tensor& logits, const Routing& r, const Gate& gate) {
  if (logits.is_meta()) return;
  sweep::device::RouterArgs args = router_args(r, gate);
  args.logits = at_of(logits);
  launch_router("router", logits, args,
                bytes_of(logits) + bytes_of(r.probs) + bytes_of(r.experts) + bytes_of(r.weights));
}

void router_backward(const Routing& r, const at::Tensor& dweights, const at::Tensor& dprobs,
                     const at::Tensor& dlogits, const Gate& gate) {
  if (dlogits.is_meta()) return;
  sweep::device::RouterArgs args = router_args(r, gate);
  args.dweights = at_of(dweights), args.dprobs = at_of(dprobs), args.dlogits = at_of(dlogits);
  launch_router("router_backward", dlogits, args,
                bytes_of(dlogits) + bytes_of(r.probs) + bytes_of(r.experts) + 2 * bytes_of(r.weights));
}

void combine(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& weights,
             const at::Tensor& base, const at::Tensor& to) {
  if (rows.is_meta()) return;
  const Index tokens = to.size(0), n = to.size(1);
  const sweep::device::CombineArgs args{
      at_of(places), at_of(weights), at_of(base), at_of(rows), at_of(to), tokens, places.numel() / tokens, n};
  launch_combine("combine", to, args, aligned({rows, base, to}, {n}),
                 bytes_of(rows) + bytes_of(base) + bytes_of(to) + bytes_of(places) + bytes_of(weights));
}

void combine_backward(const at::Tensor& grad, const at::Tensor& places, const at::Tensor& weights,
                      const at::Tensor& rows, const at::Tensor& dweights) {
  if (rows.is_meta()) return;
  const Index tokens = grad.size(0), n = grad.size(1);
  const sweep::device::CombineArgs args{at_of(places),
                                        at_of(weights),
                                        at_of(grad),
                                        at_of(rows),
                                        at_of(dweights),
                                        tokens,
                                        places.numel() / tokens,
                                        n};
  launch_combine("combine_backward", rows, args, aligned({grad, rows}, {n}),
                 bytes_of(grad) + 2 * bytes_of(rows) + bytes_of(places) + 2 * bytes_of(weights));
}

namespace {

sweep::device::GroupBiasArgs bias_args(const at::Tensor& rows, const at::Tensor& ends, const at::Tensor& bias,
                                       bool add) {
  return {at_of(ends), at_of(rows), at_of(bias), rows.size(0), rows.size(1), ends.size(0), add ? 1 : 0};
}

}  // namespace

void add_group_bias(const at::Tensor& rows, const at::Tensor& ends, const at::Tensor& bias) {
  if (rows.is_meta()) return;
  const Index n = rows.size(1);
  const auto args = bias_args(rows, ends, bias, true);
  const bool packed = aligned({rows, bias}, {n});
  run(rows, {"add_group_bias",
             {},
             packed,
             blocks_for(rows.size(0)),
             threads_for(packed ? n / pack_of(rows) : n),
             0,
             &args,
             2 * bytes_of(rows) + bytes_of(bias)});
}

void sum_group_bias(const at::Tensor& rows, const at::Tensor& ends, const GradOut& bias) {
  namespace d = sweep::device;
  if (rows.is_meta()) return;
  const Index n = rows.size(1);
  const auto args = bias_args(rows, ends, bias.grad, bias.add);
  const bool packed = aligned({rows}, {n});
  const Index pack = packed ? pack_of(rows) : 1, columns = d::kSumColumns * pack;
  constexpr unsigned kThreads = d::kSumColumns * d::kSumGroups;
  const std::size_t element = rows.scalar_type() == at::kDouble ? sizeof(double) : sizeof(float);
  run(rows, {"sum_group_bias",
             {},
             packed,
             blocks_for(ends.size(0) * ((n + columns - 1) / columns)),
             kThreads,
             element * kThreads * static_cast<std::size_t>(pack),
             &args,
             bytes_of(rows) + bytes_of(bias.grad)});
}

}  // namespace sweep::kernels::device
