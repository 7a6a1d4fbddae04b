// Tensor, sequence and context parallelism, alone and with each other and data parallelism, against one rank:
// the same loss, gradients and parameters.
#include <ATen/ATen.h>

#include "bench_kernels/kernels/ops.h"
#include "tests/parity/parity_table.h"

namespace sweep::testing {
namespace {

constexpr int kSplitSteps = 3;

Trial split(Trial t, i64 dp, i64 tp, i64 cp, bool sp = false, bool overlap = false) {
  t = with_degrees(t, dp, tp, 1, cp);
  t.sp = sp, t.tp_overlap = overlap;
  return t;
}
Trial exchanging(Trial t) {
  t.cp_comm_type = CpCommType::kAllToAll;
  return t;
}
Trial grouped() {  // two query heads to a key-value head
  Trial t = tiny_trial();
  t.spec.kv_heads = 2;
  return t;
}
Trial shared(i64 kv_heads) {  // a key-value head on several tensor-parallel ranks
  Trial t = tiny_trial();
  t.spec.kv_heads = kv_heads;
  return t;
}
Trial at_stage(Trial t, i64 zero) {
  t.zero = zero;
  return t;
}
Trial changed(Trial t, void (*change)(Trial&)) {
  change(t);
  return t;
}
Trial gpt2() {  // biases, learned positions, transposed weights, q, k and v in one, tied
  Trial t = tiny_trial();
  t.spec.family = "gpt2", t.spec.max_positions = 24, t.spec.tie_embeddings = true;
  t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  return t;
}
Trial qwen_tied() {
  Trial t = grouped();
  t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true;
  return t;
}
Trial qwen3() {  // norms of the heads of q and k, which are wider than hidden_size / heads
  Trial t = grouped();
  t.spec.family = "qwen3", t.spec.tie_embeddings = true, t.spec.head_dim += 2;
  return t;
}
Trial windowed() {
  Trial t = grouped();
  t.spec.family = "mistral", t.spec.sliding_window = 5;
  return t;
}
Trial gemma3() {
  Trial t = qwen3();
  windows_by_layer(t);
  t.spec.query_pre_attn_scalar = 24;
  return t;
}
Trial gpt_oss() {  // tokens go where the router's logits say
  Trial t = grouped();
  with_sinks(t);
  t.routing = Routing::kLearned;
  return t;
}
Trial math(Trial t) {
  t.attention = AttentionKind::kMath;
  return t;
}
Trial larger_batches(Trial t) {
  t.micro_batch_size = 2, t.grad_accum /= 2;
  return t;
}

// A GPU computes the overlap in this way: the rows that a piece has of each rank are one product.
TEST(SplitParity, OverlapInBlocks) {
  kernels::set_path(kernels::Path::kPlain);
  ParityTable table(kSplitSteps);
  table.expect_equal("tp 2, sp, overlap", split(tiny_trial(), 1, 2, 1, true, true));
  table.expect_equal("tp 4, sp, overlap, gpt2", split(gpt2(), 1, 4, 1, true, true));
  Trial adapted = split(tiny_trial(), 1, 2, 1, true, true);
  adapted.lora_rank = 2;
  table.expect_equal("tp 2, sp, overlap, adapters", adapted);
  kernels::set_path(kernels::Path::kFused);
}

TEST(SplitParity, Tensor) {
  ParityTable table(kSplitSteps);
  const Trial llama = tiny_trial();
  table.expect_equal("tp 2", split(llama, 1, 2, 1));
  table.expect_equal("tp 4", split(llama, 1, 4, 1));
  table.expect_equal("tp 2, overlap", split(llama, 1, 2, 1, false, true));
  table.expect_equal("tp 2, grouped heads", split(grouped(), 1, 2, 1));
  table.expect_equal("tp 2, gpt2", split(gpt2(), 1, 2, 1));
  table.expect_equal("tp 4, gpt2", split(gpt2(), 1, 4, 1));
  table.expect_equal("tp 2, qwen2 tied", split(qwen_tied(), 1, 2, 1));
  table.expect_equal("tp 2, qwen3", split(qwen3(), 1, 2, 1));
  table.expect_equal("tp 2, qwen3, recompute selective",
                     changed(split(qwen3(), 1, 2, 1), [](Trial& t) { t.recompute = Recompute::kSelective; }));
  table.expect_equal("tp 2, gemma3", split(gemma3(), 1, 2, 1));
  table.expect_equal("tp 2, gemma3, recompute selective", changed(split(gemma3(), 1, 2, 1), [](Trial& t) {
                       t.recompute = Recompute::kSelective;
                     }));
  table.expect_equal("tp 2, gemma3, recompute full",
                     changed(split(gemma3(), 1, 2, 1), [](Trial& t) { t.recompute = Recompute::kFull; }));
  table.expect_equal("tp 2, gpt_oss", split(gpt_oss(), 1, 2, 1));
  table.expect_equal("tp 2, gpt_oss, recompute selective", changed(split(gpt_oss(), 1, 2, 1), [](Trial& t) {
                       t.recompute = Recompute::kSelective;
                     }));
  table.expect_equal("tp 2, math", split(math(grouped()), 1, 2, 1));
  table.expect_equal("tp 2, micro-batch 2", larger_batches(split(llama, 1, 2, 1)));
}

// 61 tokens on 2 and 4 ranks, and with a multiple that pads more: the last rank holds the padding.
TEST(SplitParity, PaddedVocabulary) {
  ParityTable table(kSplitSteps);
  Trial odd = gpt2(), untied = tiny_trial();
  odd.spec.vocab_size = untied.spec.vocab_size = 61;
  table.expect_equal("tp 2, gpt2", split(odd, 1, 2, 1));
  table.expect_equal("tp 4, gpt2", split(odd, 1, 4, 1));
  table.expect_equal("tp 4, untied", split(untied, 1, 4, 1));
  table.expect_equal("tp 2 + sp + overlap, gpt2", split(odd, 1, 2, 1, true, true));
  table.expect_equal("tp 2 x cp 2 + sp, gpt2", split(odd, 1, 2, 2, true));
  table.expect_equal("tp 2 x pp 2, gpt2", with_degrees(odd, 1, 2, 2, 1));
  for (const i64 zero : {1, 2, 3})
    table.expect_equal("dp 2 x tp 2, gpt2, zero " + std::to_string(zero),
                       at_stage(split(odd, 2, 2, 1), zero));
  odd.vocab_multiple = untied.vocab_multiple = 10;  // 70 rows alone, 80 on two ranks
  table.expect_equal("multiple 10, gpt2", split(odd, 1, 1, 1));
  table.expect_equal("multiple 10, tp 2, gpt2", split(odd, 1, 2, 1));
  table.expect_equal("multiple 10, tp 2 x pp 2, untied", with_degrees(untied, 1, 2, 2, 1));
  odd.seq_len = 2, odd.grad_clip = true;
  table.expect_equal("multiple 10, dp 2 x tp 2, zero 2, clip", at_stage(split(odd, 2, 2, 1), 2));
}

TEST(SplitParity, Sequence) {
  ParityTable table(kSplitSteps);
  const Trial llama = tiny_trial();
  table.expect_equal("tp 2 + sp", split(llama, 1, 2, 1, true));
  table.expect_equal("tp 4 + sp", split(llama, 1, 4, 1, true));
  table.expect_equal("tp 2 + sp + overlap", split(llama, 1, 2, 1, true, true));
  table.expect_equal("tp 4 + sp + overlap", split(llama, 1, 4, 1, true, true));
  table.expect_equal("tp 2 + sp, grouped heads", split(grouped(), 1, 2, 1, true));
  table.expect_equal("tp 2 + sp, gpt2", split(gpt2(), 1, 2, 1, true));
  table.expect_equal("tp 4 + sp + overlap, gpt2", split(gpt2(), 1, 4, 1, true, true));
  table.expect_equal("tp 2 + sp, qwen2 tied", split(qwen_tied(), 1, 2, 1, true));
  table.expect_equal("tp 2 + sp, qwen3", split(qwen3(), 1, 2, 1, true));
  table.expect_equal("tp 2 + sp, gpt_oss", split(gpt_oss(), 1, 2, 1, true));
  table.expect_equal("tp 2 + sp, gemma3", split(gemma3(), 1, 2, 1, true));
  table.expect_equal(
      "tp 4, kv 2 + sp + overlap, gemma3, offloaded activations",
      changed(split(gemma3(), 1, 4, 1, true, true), [](Trial& t) { t.activation_offload = true; }));
  table.expect_equal("tp 4 + sp, micro-batch 2", larger_batches(split(llama, 1, 4, 1, true)));
}

TEST(SplitParity, Context) {
  ParityTable table(kSplitSteps);
  const Trial llama = tiny_trial();
  table.expect_equal("cp 2", split(llama, 1, 1, 2));
  table.expect_equal("cp 4", split(llama, 1, 1, 4));
  table.expect_equal("cp 2, grouped heads", split(grouped(), 1, 1, 2));
  table.expect_equal("cp 4, gpt2", split(gpt2(), 1, 1, 4));
  table.expect_equal("cp 2, qwen2 tied", split(qwen_tied(), 1, 1, 2));
  table.expect_equal("cp 2, qwen3", split(qwen3(), 1, 1, 2));
  table.expect_equal("cp 2 all-to-all, qwen3", exchanging(split(qwen3(), 1, 1, 2)));
  table.expect_equal("cp 2, micro-batch 2", larger_batches(split(llama, 1, 1, 2)));
  table.expect_equal("cp 2 all-to-all", exchanging(split(llama, 1, 1, 2)));
  table.expect_equal("cp 4 all-to-all", exchanging(split(llama, 1, 1, 4)));
  table.expect_equal("cp 2 all-to-all, grouped heads", exchanging(split(grouped(), 1, 1, 2)));
  table.expect_equal("cp 4 all-to-all, gpt2", exchanging(split(gpt2(), 1, 1, 4)));
  table.expect_equal("cp 2 all-to-all, window", exchanging(split(windowed(), 1, 1, 2)));
  table.expect_equal("cp 2 all-to-all, gpt_oss", exchanging(split(gpt_oss(), 1, 1, 2)));
  table.expect_equal(
      "cp 2 all-to-all x tp 2, gpt_oss + sp",
      changed(exchanging(split(gpt_oss(), 1, 2, 2, true)), [](Trial& t) { t.spec.kv_heads = t.spec.heads; }));
  table.expect_equal("cp 2 all-to-all, gemma3", exchanging(split(gemma3(), 1, 1, 2)));
  table.expect_equal(
      "cp 2 all-to-all x tp 2, gemma3, math",
      changed(exchanging(split(math(gemma3()), 1, 2, 2)), [](Trial& t) { t.spec.kv_heads = 4; }));
  table.expect_equal("cp 2 all-to-all, math", exchanging(split(math(grouped()), 1, 1, 2)));
  table.expect_equal("cp 2 all-to-all, micro-batch 2", larger_batches(exchanging(split(llama, 1, 1, 2))));
}

TEST(SplitParity, SharedKeyValueHeads) {
  ParityTable table(kSplitSteps);
  table.expect_equal("tp 2, kv 1", split(shared(1), 1, 2, 1));
  table.expect_equal("tp 4, kv 1", split(shared(1), 1, 4, 1));
  table.expect_equal("tp 4, kv 2", split(shared(2), 1, 4, 1));
  table.expect_equal("tp 4, kv 2, micro-batch 2", larger_batches(split(shared(2), 1, 4, 1)));
  table.expect_equal("tp 4, kv 2 + sp", split(shared(2), 1, 4, 1, true));
  table.expect_equal("tp 4, kv 2 + sp + overlap", split(shared(2), 1, 4, 1, true, true));
  table.expect_equal("tp 4, kv 2, qwen2 tied + sp", split(qwen_tied(), 1, 4, 1, true));
  table.expect_equal("tp 4, kv 2, qwen3", split(qwen3(), 1, 4, 1));
  table.expect_equal("tp 4, kv 2, qwen3 + sp, offloaded activations",
                     changed(split(qwen3(), 1, 4, 1, true), [](Trial& t) { t.activation_offload = true; }));
  for (const i64 zero : long_run() ? std::vector<i64>{1, 2, 3} : std::vector<i64>{3})
    table.expect_equal("dp 2 x tp 2, qwen3, zero " + std::to_string(zero),
                       at_stage(split(qwen3(), 2, 2, 1), zero));
  for (const i64 zero : long_run() ? std::vector<i64>{1, 2, 3} : std::vector<i64>{2})
    table.expect_equal("dp 2 x tp 2, gemma3, zero " + std::to_string(zero),
                       at_stage(split(gemma3(), 2, 2, 1), zero));
  for (const i64 zero : long_run() ? std::vector<i64>{0, 1, 2, 3} : std::vector<i64>{1, 3})
    table.expect_equal("dp 2 x ep 2 x tp 2, gpt_oss, zero " + std::to_string(zero),
                       at_stage(with_degrees(gpt_oss(), 2, 2, 1, 1, 2), zero));
  table.expect_equal(
      "tp 4, kv 2 x pp 2, gpt_oss, recompute full",
      changed(with_degrees(gpt_oss(), 1, 4, 2, 1), [](Trial& t) { t.recompute = Recompute::kFull; }));
  table.expect_equal("tp 2 x pp 2, gemma3", with_degrees(gemma3(), 1, 2, 2, 1));
  table.expect_equal("tp 4, kv 2, math", split(math(shared(2)), 1, 4, 1));
  table.expect_equal("tp 4, kv 2, window", split(windowed(), 1, 4, 1));
  table.expect_equal("tp 4, kv 2, recompute full",
                     changed(split(shared(2), 1, 4, 1), [](Trial& t) { t.recompute = Recompute::kFull; }));
  table.expect_equal("tp 4, kv 2, recompute selective", changed(split(shared(2), 1, 4, 1), [](Trial& t) {
                       t.recompute = Recompute::kSelective;
                     }));
  table.expect_equal("tp 4, kv 2, offloaded activations",
                     changed(split(shared(2), 1, 4, 1), [](Trial& t) { t.activation_offload = true; }));
}

TEST(SplitParity, SharedKeyValueHeadsInProducts) {
  ParityTable table(kSplitSteps);
  for (const i64 zero : long_run() ? std::vector<i64>{0, 1, 2, 3} : std::vector<i64>{2, 3})
    table.expect_equal("dp 2 x tp 4, kv 2, zero " + std::to_string(zero),
                       at_stage(split(shared(2), 2, 4, 1), zero));
  for (const Schedule schedule : {Schedule::k1f1b, Schedule::kGpipe, Schedule::kZeroBubble}) {
    if (schedule != Schedule::kZeroBubble && !long_run()) continue;
    Trial t = with_degrees(shared(2), 1, 4, 2, 1);
    t.schedule = schedule;
    table.expect_equal("tp 4, kv 2 x pp 2 " + std::string(to_string(schedule)), t);
  }
  table.expect_equal("tp 2, kv 1 x pp 2 x 2 chunks + sp",
                     changed(with_degrees(shared(1), 1, 2, 2, 1),
                             [](Trial& t) { t.schedule = Schedule::kInterleaved, t.vpp = 2, t.sp = true; }));
  table.expect_equal("tp 4, kv 2 x cp 2 + sp", split(shared(2), 1, 4, 2, true));
  table.expect_equal("dp 2 x ep 2 x tp 4, kv 2 + sp",
                     changed(with_degrees(shared(2), 2, 4, 1, 1, 2), [](Trial& t) {
                       t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
                       t.routing = Routing::kLearned, t.sp = true;
                     }));
}

// The norm over all ranks counts each piece once. So few tokens that it is above 1.
TEST(SplitParity, SharedKeyValueHeadsClipped) {
  ParityTable table(kSplitSteps);
  Trial few = shared(2);
  few.seq_len = 2, few.grad_clip = true;
  table.expect_equal("tp 4, kv 2, clip", split(few, 1, 4, 1));
  table.expect_equal("dp 2 x tp 4, kv 2, zero 2, clip", at_stage(split(few, 2, 4, 1), 2));
  few.seq_len = 4;
  table.expect_equal("dp 2 x tp 4, kv 2 + sp, zero 3, clip", at_stage(split(few, 2, 4, 1, true), 3));
  double squares = 0;
  const WholeRun clipped = run_layout(split(few, 1, 4, 1), kSplitSteps);
  for (const auto& [name, tensor] : clipped.tensors) squares += tensor.gradient.square().sum().item<double>();
  EXPECT_NEAR(squares, 1, 2e-3);
}

// Two of them at once on Llama: Products, as pairs.
TEST(SplitParity, Together) {
  ParityTable table(kSplitSteps);
  const Trial llama = tiny_trial();
  table.expect_equal("tp 2 x cp 2 + sp, gpt2", split(gpt2(), 1, 2, 2, true));
  table.expect_equal("dp 2 x tp 2 x cp 2 + sp + overlap", split(llama, 2, 2, 2, true, true));
  table.expect_equal("tp 4 x cp 2 + sp", split(llama, 1, 4, 2, true));
  table.expect_equal("tp 2 x cp 4", split(llama, 1, 2, 4));
  table.expect_equal("dp 2 x cp 4", split(llama, 2, 1, 4));
}

}  // namespace
}  // namespace sweep::testing
