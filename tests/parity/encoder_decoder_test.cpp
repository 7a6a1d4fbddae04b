// An encoder-decoder model on several ranks, and with what trades memory, against the plain run on one: the same loss,
// gradients and parameters.
#include "tests/parity/parity_table.h"

namespace sweep::testing {
namespace {

Trial encoder_decoder(i64 dp, i64 zero) {
  Trial t = tiny_trial();
  t.spec.family = "blenderbot", t.spec.encoder_layers = 2, t.spec.max_positions = 24;
  t.spec.tie_embeddings = t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.rmsnorm = t.spec.swiglu = t.spec.rope = false;
  t.encoder_seq_len = 22, t.zero = zero, t.micro_batch_size = 2;
  return with_degrees(t, dp, 1, 1, 1);
}

TEST(EncoderDecoderParity, EqualsOneRank) {
  ParityTable table(3);
  for (const i64 zero : {0, 1, 2, 3})
    table.expect_equal("dp 2, zero " + std::to_string(zero), encoder_decoder(2, zero));
  Trial t = encoder_decoder(4, 3);
  t.reshard_after_forward = false;
  table.expect_equal("dp 4, zero 3, kept", t);
  t = encoder_decoder(4, 2), t.dp_shard = 2, t.grad_bucket_mb = 0;
  table.expect_equal("dp 4, zero 2 within 2, small buckets", t);
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    t = encoder_decoder(2, 3), t.recompute = recompute;
    if (recompute == Recompute::kFull) t.recompute_every = 3;
    table.expect_equal("dp 2, zero 3, recompute " + std::string(to_string(recompute)), t);
    t.activation_offload = true, t.attention = AttentionKind::kMath;
    table.expect_equal("the same, offloaded activations, math", t);
  }
  t = encoder_decoder(2, 3), t.offload = Offload::kParameters;
  table.expect_equal("dp 2, zero 3, parameters offloaded", t);
  t = encoder_decoder(1, 0), t.offload = Offload::kOptimizer, t.activation_offload = true;
  table.expect_equal("optimizer and activations offloaded", t);
}

// Its embedding table is read twice, and its head has one of its own or the same.
TEST(EncoderDecoderParity, RelativePositionsEqualOneRank) {
  ParityTable table(3);
  for (const bool tied : {false, true}) {
    const auto t5 = [&](i64 dp, i64 zero) {
      Trial t = encoder_decoder(dp, zero);
      t.spec.family = "t5", t.spec.max_positions = 0, t.spec.tie_embeddings = tied;
      t.spec.rmsnorm = t.spec.swiglu = true, t.spec.attention_bias = t.spec.linear_bias = false;
      t.attention = AttentionKind::kMath;
      return t;
    };
    const std::string name = tied ? "t5 tied" : "t5";
    for (const i64 zero : {0, 1, 2, 3})
      table.expect_equal(name + ", dp 2, zero " + std::to_string(zero), t5(2, zero));
    Trial t = t5(4, 2);
    t.dp_shard = 2, t.grad_bucket_mb = 0;
    table.expect_equal(name + ", dp 4, zero 2 within 2, small buckets", t);
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      t = t5(2, 3), t.recompute = recompute, t.activation_offload = true;
      table.expect_equal(name + ", dp 2, zero 3, offloaded, recompute " + std::string(to_string(recompute)),
                         t);
    }
    t = t5(2, 3), t.offload = Offload::kParameters;
    table.expect_equal(name + ", dp 2, zero 3, parameters offloaded", t);
    t = t5(2, 3), t.spec.family = "t5_v1_0", t.spec.swiglu = false;
    table.expect_equal(name + " with ReLU, dp 2, zero 3", t);
  }
}

}  // namespace
}  // namespace sweep::testing
