// When backward gathers the next block's weights, and when the gradients of the block at work leave.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/parallel/model_state.h"

namespace sweep::parallel {
namespace {

using comm::Kind;

struct Calls {
  i64 gathers = 0, reductions = 0;
  bool operator==(const Calls&) const = default;
};

// Bytes that the last group of two ranks at ZeRO 3 sends: after need(), when its gradients are complete, after done(). In
// gathers and reductions of groups; each has one bucket.
std::vector<Calls> calls_of(BackwardPrefetch when, i64 ahead) {
  Trial t;
  t.spec.layers = 3, t.spec.hidden_size = 8, t.spec.heads = t.spec.kv_heads = 2, t.spec.head_dim = 4;
  t.spec.intermediate_size = 12, t.spec.vocab_size = 10;
  t.dp = t.gpus_per_node = t.global_batch_size = 2, t.zero = 3;
  t.backward_prefetch = when, t.prefetch_backward = ahead;
  Mesh mesh = pretend(*shape::ParallelDims::make(t), 0);
  model::AloneLayout layout;
  model::Options options;
  options.type = compute_type(t), options.seq_len = 8;
  model::Stage stage(t.spec, options, layout.value(), {0, t.spec.layers, true, true});
  ModelState state(stage.parameters(), mesh, t, at::TensorOptions(compute_type(t)));
  model::Parameters& p = stage.parameters();
  const std::size_t last = p.groups() - 1;
  std::vector<Calls> out;
  const auto note = [&] {
    const comm::Traffic traffic = mesh.traffic();
    out.push_back({traffic.calls_of(Kind::kAllGather), traffic.calls_of(Kind::kReduceScatter)});
  };
  state.begin_step();
  state.begin_backward(true);
  state.need(last, model::Pass::kBackward);
  note();
  for (const std::size_t b : p.buckets_read_by(last))
    for (const model::Parameters::Id id : p.buckets()[b].stacks)
      p.gradients().of(id).grad.fill_(1), p.gradients().ready(id);
  note();
  state.done(last, model::Pass::kBackward);
  note();
  return out;
}

TEST(BackwardPrefetch, PreGathersBeforeTheBlockAndPostBeforeItsReduction) {
  EXPECT_EQ(calls_of(BackwardPrefetch::kPre, 1), (std::vector<Calls>{{2, 0}, {2, 1}, {2, 1}}));
  EXPECT_EQ(calls_of(BackwardPrefetch::kPost, 1), (std::vector<Calls>{{1, 0}, {1, 0}, {2, 1}}));
  EXPECT_EQ(calls_of(BackwardPrefetch::kPost, 2), (std::vector<Calls>{{2, 0}, {2, 0}, {3, 1}}));
  EXPECT_EQ(calls_of(BackwardPrefetch::kPost, 0), calls_of(BackwardPrefetch::kPre, 0)) << "none is ahead";
}

}  // namespace
}  // namespace sweep::parallel
