// Tensor, sequence and context parallelism, alone and with each other and data parallelism, against one rank:
// the same loss, gradients and parameters.
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
  t.cp_form = "all_to_all";
  return t;
}
Trial grouped() {  // two query heads to a key-value head
  Trial t = tiny_trial();
  t.spec.kv_heads = 2;
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
Trial windowed() {
  Trial t = grouped();
  t.spec.family = "mistral", t.spec.sliding_window = 5;
  return t;
}
Trial math(Trial t) {
  t.attention = "math";
  return t;
}
Trial larger_batches(Trial t) {
  t.micro_batch_size = 2, t.grad_accum /= 2;
  return t;
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
  table.expect_equal("tp 2, math", split(math(grouped()), 1, 2, 1));
  table.expect_equal("tp 2, micro-batch 2", larger_batches(split(llama, 1, 2, 1)));
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
  table.expect_equal("cp 2, micro-batch 2", larger_batches(split(llama, 1, 1, 2)));
  table.expect_equal("cp 2 all-to-all", exchanging(split(llama, 1, 1, 2)));
  table.expect_equal("cp 4 all-to-all", exchanging(split(llama, 1, 1, 4)));
  table.expect_equal("cp 2 all-to-all, grouped heads", exchanging(split(grouped(), 1, 1, 2)));
  table.expect_equal("cp 4 all-to-all, gpt2", exchanging(split(gpt2(), 1, 1, 4)));
  table.expect_equal("cp 2 all-to-all, window", exchanging(split(windowed(), 1, 1, 2)));
  table.expect_equal("cp 2 all-to-all, math", exchanging(split(math(grouped()), 1, 1, 2)));
  table.expect_equal("cp 2 all-to-all, micro-batch 2", larger_batches(exchanging(split(llama, 1, 1, 2))));
}

TEST(SplitParity, Together) {
  ParityTable table(kSplitSteps);
  const Trial llama = tiny_trial();
  table.expect_equal("dp 2 x tp 2", split(llama, 2, 2, 1));
  table.expect_equal("dp 2 x tp 2 + sp", split(llama, 2, 2, 1, true));
  table.expect_equal("dp 2 x cp 2", split(llama, 2, 1, 2));
  table.expect_equal("dp 2 x cp 2 all-to-all", exchanging(split(llama, 2, 1, 2)));
  table.expect_equal("tp 2 x cp 2", split(llama, 1, 2, 2));
  table.expect_equal("tp 2 x cp 2 + sp", split(llama, 1, 2, 2, true));
  table.expect_equal("tp 2 x cp 2 all-to-all + sp", exchanging(split(llama, 1, 2, 2, true)));
  table.expect_equal("tp 2 x cp 2 + sp, gpt2", split(gpt2(), 1, 2, 2, true));
  table.expect_equal("dp 2 x tp 2 x cp 2 + sp + overlap", split(llama, 2, 2, 2, true, true));
  table.expect_equal("tp 4 x cp 2 + sp", split(llama, 1, 4, 2, true));
  table.expect_equal("tp 2 x cp 4", split(llama, 1, 2, 4));
  table.expect_equal("dp 2 x cp 4", split(llama, 2, 1, 4));
}

}  // namespace
}  // namespace sweep::testing
