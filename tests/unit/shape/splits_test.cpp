// Tests of what divides over tensor and context parallelism, of what is not built, and of the traffic's
// closed forms.
#include "bench_kernels/shape/splits.h"

#include <gtest/gtest.h>

#include <array>

#include "bench_kernels/shape/split_traffic.h"

namespace sweep::shape {
namespace {

Trial trial() {
  Trial t;
  t.spec.layers = 3, t.spec.hidden_size = 64, t.spec.heads = 8, t.spec.kv_heads = 4, t.spec.head_dim = 8;
  t.spec.intermediate_size = 128, t.spec.vocab_size = 256;
  t.seq_len = 32, t.micro_batch_size = 2, t.grad_accum = 5;
  return t;
}

TEST(LossRows, AreFewChunksOfEqualLengthWithinTheLimit) {
  EXPECT_EQ(loss_rows(4096, 128256, 2), 1024);  // 1046 would fit: four chunks
  EXPECT_EQ(loss_rows(4096, 128256, 4), 512);
  EXPECT_EQ(loss_rows(48, 211, 4), 48);
  EXPECT_EQ(loss_rows(3, i64{1} << 40, 2), 1);
  EXPECT_EQ(loss_rows(0, 211, 4), 1);
}

TEST(Splits, NameWhatDoesNotDivideWithItsNumbers) {
  Trial t = trial();
  t.tp = 4, t.cp = 2, t.sp = true;
  EXPECT_EQ(uneven_split(t), std::nullopt);
  t.seq_len = 34;
  EXPECT_EQ(uneven_split(t), "seq_len 34 is not divisible by 2*cp=4");
  t = trial();
  t.tp = 4, t.sp = true, t.micro_batch_size = 1, t.seq_len = 30;
  EXPECT_EQ(uneven_split(t), "sp: micro_batch_size 1 x seq_len 30 / cp 1 = 30 is not divisible by tp=4");
  t.sp = false;
  EXPECT_EQ(uneven_split(t), std::nullopt);
  t = trial();
  t.tp = 2, t.cp = 4, t.cp_comm_type = CpCommType::kAllToAll;
  EXPECT_EQ(uneven_split(t),
            "cp_comm_type all_to_all: key-value heads of a rank = 2 is not divisible by cp=4");
  t.tp = 8, t.cp = 2;
  EXPECT_EQ(uneven_split(t), "cp_comm_type all_to_all: heads / tp = 1 is not divisible by cp=2");
  t.spec.heads = 16;
  EXPECT_EQ(uneven_split(t),
            "cp_comm_type all_to_all: key-value heads of a rank = 1 is not divisible by cp=2");
  t.tp = 0;
  EXPECT_TRUE(uneven_split(t)) << "no division by a degree of zero";
}

TEST(Splits, NameTheWidthOfLayersWithoutExperts) {
  Trial t = trial();
  t.tp = 4, t.spec.dense_intermediate_size = 130;
  EXPECT_EQ(uneven_split(t), "dense_intermediate_size 130 is not divisible by tp=4");
}

// Megatron-LM's vocab_size_with_padding(): the multiple times tp.
TEST(Splits, PadTheVocabularyToTheMultipleTimesTp) {
  Trial t = trial();
  t.spec.vocab_size = 50257;
  for (const auto& [multiple, tp, rows] : {std::array{1, 1, 50257},
                                           {1, 2, 50258},
                                           {1, 4, 50260},
                                           {128, 1, 50304},
                                           {128, 2, 50432},
                                           {128, 8, 51200}}) {
    t.vocab_multiple = multiple, t.tp = tp;
    EXPECT_EQ(padded_vocab(t), rows) << multiple << " x " << tp;
    EXPECT_EQ(uneven_split(t), std::nullopt) << multiple << " x " << tp;
  }
  t.spec.vocab_size = 100, t.tp = 2;
  for (const i64 multiple : {1, 32, 64, 99}) {
    t.vocab_multiple = multiple;
    EXPECT_EQ(uneven_split(t), std::nullopt) << multiple;
  }
  t.vocab_multiple = 100;
  EXPECT_TRUE(uneven_split(t)) << "the second rank would hold padding only";
  t.spec.vocab_size = 5, t.vocab_multiple = 1, t.tp = 4;
  EXPECT_TRUE(uneven_split(t)) << "2 rows on each of 4 ranks";
  t.tp = 1, t.vocab_multiple = 0;
  EXPECT_TRUE(uneven_split(t)) << "no division by zero";
}

TEST(Splits, SayWhatIsNotBuiltAndTheWayOut) {
  Trial t = trial();
  t.dp = 8, t.ep = 4, t.dp_shard = 2, t.spec.experts = 4;
  EXPECT_NE(split_not_built(t)->find("ep 4 does not divide a shard set of 2 ranks"), std::string::npos);
  t.cp = 2, t.cp_comm_type = CpCommType::kAllToAll;
  EXPECT_EQ(split_not_built(t), std::nullopt) << "dp_shard 2 x cp 2";
  t.cp = 1, t.dp_shard = 4;
  EXPECT_EQ(split_not_built(t), std::nullopt);
  t = trial();
  t.cp = 2, t.attention = AttentionKind::kMath;
  EXPECT_NE(split_not_built(t)->find("take attention flash or auto"), std::string::npos);
  t.cp_comm_type = CpCommType::kAllToAll;
  EXPECT_EQ(split_not_built(t), std::nullopt);
  t = trial();
  t.cp = 2, t.spec.sliding_window = 8;
  EXPECT_NE(split_not_built(t)->find("no sliding window"), std::string::npos);
  t.spec.sliding_window = 32;
  EXPECT_EQ(split_not_built(t), std::nullopt) << "a window of the whole sequence hides nothing";
  t.spec.family = "gpt_oss";
  EXPECT_NE(split_not_built(t)->find("no sinks"), std::string::npos);
  t.cp_comm_type = CpCommType::kAllToAll;
  EXPECT_EQ(split_not_built(t), std::nullopt);
}

TEST(Splits, TensorTrafficIsFourAllReducesALayerAndMicroBatch) {
  Trial t = trial();
  t.tp = 4;
  const i64 activations = 2 * 32 * 64 * 4, sent = activations * 3 / 4, row = 2 * 32 * 4 * 3 / 4;
  EXPECT_EQ(tensor_traffic(t).all_reduce, (Volume{5 * (4 * 3 + 2 + 2), 5 * (14 * 2 * sent + 2 * 3 * row)}));
  EXPECT_EQ(tensor_traffic(t).all_gather, Volume{});
  t.sp = true;
  const TensorTraffic split = tensor_traffic(t);
  EXPECT_EQ(split.all_gather, (Volume{5 * 20, 5 * 20 * sent}));
  EXPECT_EQ(split.reduce_scatter, (Volume{5 * 14, 5 * 14 * sent}));
  EXPECT_EQ(split.all_reduce, (Volume{5 * 2 + 1, 5 * 2 * 3 * row + 2 * 7 * 64 * 4 * 3 / 4}));
}

TEST(Splits, RanksShareAKeyValueHeadWhereThereAreMoreOfThem) {
  Trial t = trial();
  for (const auto& [tp, sharers, heads] : {std::array{1, 1, 4}, {2, 1, 2}, {4, 1, 1}, {8, 2, 1}}) {
    t.tp = tp;
    EXPECT_EQ(kv_sharers(t), sharers) << tp;
    EXPECT_EQ(kv_heads_of_rank(t), heads) << tp;
    EXPECT_EQ(uneven_split(t), std::nullopt) << tp;
  }
  EXPECT_EQ(split_not_built(t), std::nullopt);
  const i64 pieces = 2 * 32 * 2 * 8 * 4 / 2;  // the other rank's half of a head of k and v, for every token
  EXPECT_EQ(key_value_traffic(t).all_gather, (Volume{15, 15 * pieces}));
  EXPECT_EQ(key_value_traffic(t).reduce_scatter, (Volume{15, 15 * pieces}));
  t.recompute = Recompute::kFull;
  EXPECT_EQ(key_value_traffic(t).all_gather.calls, 30);
  EXPECT_EQ(key_value_traffic(t).reduce_scatter.calls, 15);
  t.tp = 4;
  EXPECT_EQ(key_value_traffic(t).all_gather, Volume{});
  t.tp = 8, t.spec.head_dim = 7;
  EXPECT_EQ(uneven_split(t),
            "tp 8 > kv_heads 4: head_dim 7 is not divisible by the 2 ranks that share a key-value head");
}

TEST(Splits, ContextTrafficIsTheRingOrFourExchanges) {
  Trial t = trial();
  t.cp = 4;
  const i64 tokens = 2 * 32 / 4, kv = 2 * 4 * 8 * 4, q = 8 * 8 * 4, uses = 5 * 3;
  EXPECT_EQ(context_traffic(t).send, (Volume{uses * 3 * 3, uses * 3 * 3 * tokens * kv}));
  t.cp_comm_type = CpCommType::kAllToAll;
  EXPECT_EQ(context_traffic(t).all_to_all, (Volume{uses * 4, uses * 2 * tokens * (2 * q + kv) * 3 / 4}));
}

TEST(Splits, FullRecomputationIsSixAllReducesALayerAndSelectiveNone) {
  Trial t = trial();
  t.tp = 4;
  const i64 plain = tensor_traffic(t).all_reduce.calls, layers = 5 * 3;
  t.recompute = Recompute::kSelective;
  EXPECT_EQ(tensor_traffic(t).all_reduce.calls, plain);
  t.recompute = Recompute::kFull;
  EXPECT_EQ(tensor_traffic(t).all_reduce.calls, plain + 2 * layers);
  t.sp = true;
  EXPECT_EQ(tensor_traffic(t).all_gather.calls, 8 * layers + 2 * 5);
  EXPECT_EQ(tensor_traffic(t).reduce_scatter.calls, 6 * layers + 2 * 5);
}

TEST(Splits, ARankOfAPipelineSendsForItsLayersAndItsEnds) {
  Trial t = trial();
  t.spec.layers = 4, t.tp = 2, t.pp = 2, t.grad_accum = 1;
  const i64 whole = [&] {
    Trial one = t;
    one.pp = 1;
    return tensor_traffic(one).all_reduce.calls;
  }();
  EXPECT_EQ(tensor_traffic(t, 0).all_reduce.calls + tensor_traffic(t, 1).all_reduce.calls, whole);
  EXPECT_EQ(tied_traffic(t, 0), Volume{}) << "not tied";
  t.spec.tie_embeddings = true;
  EXPECT_EQ(tied_traffic(t, 0), (Volume{1, 256 / 2 * 64 * 4})) << "twice half of the share";
  t.spec.vocab_size = 255, t.vocab_multiple = 8;
  EXPECT_EQ(tied_traffic(t, 0), (Volume{1, 256 / 2 * 64 * 4})) << "padding travels too";
  t.spec.vocab_size = 251, t.vocab_multiple = 1, t.dp = 2, t.zero = 1;
  EXPECT_EQ(tied_traffic(t, 0), (Volume{1, 126 * 64 / 2 * 4}));
  t.dp = 8;
  EXPECT_EQ(tied_traffic(t, 0), (Volume{1, 1024 * 4})) << "shares are multiples of 32, and 1008 is none";
  t.pp = 4;
  EXPECT_EQ(tied_traffic(t, 1), Volume{}) << "in the middle";
}

TEST(Splits, RecomputedContextRepeatsTheForward) {
  Trial t = trial();
  t.cp = 4;
  const i64 ring = context_traffic(t).send.calls;
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    t.recompute = recompute;
    EXPECT_EQ(context_traffic(t).send.calls, ring / 3 * 4) << to_string(recompute);
  }
  t.cp_comm_type = CpCommType::kAllToAll;
  EXPECT_EQ(context_traffic(t).all_to_all.calls, 6 * 5 * 3);
  t.recompute = Recompute::kSelective;
  EXPECT_EQ(context_traffic(t).all_to_all.calls, 5 * 5 * 3) << "the result's exchange once more";
}

TEST(Splits, ExpertTrafficIsFourExchangesALayerAndSixWithFullRecomputation) {
  Trial t = trial();
  t.spec.experts = 4, t.spec.experts_per_token = 2, t.dp = 4, t.ep = 2;
  const i64 rows = 2 * 32 * 2 * 64 * 4 / 2;  // half of the two choices of 64 tokens go to the other rank
  EXPECT_EQ(expert_traffic(t).all_to_all, (Volume{4 * 15, 4 * 15 * rows}));
  EXPECT_EQ(expert_traffic(t).counts, Volume{});
  EXPECT_EQ(expert_traffic(t).load, Volume{});
  t.capacity_percent = 50;
  EXPECT_EQ(expert_traffic(t).all_to_all, (Volume{4 * 15, 4 * 15 * rows / 2}));
  t.capacity_percent = 1;
  EXPECT_EQ(expert_traffic(t).all_to_all.bytes, 4 * 15 * 4 * 64 * 4 / 2) << "a row of each expert";
  t.capacity_percent = 125;
  EXPECT_EQ(expert_traffic(t).all_to_all.bytes, 4 * 15 * rows);
  t.capacity_percent = 0;
  t.routing = Routing::kLearned, t.recompute = Recompute::kFull, t.spec.router_aux_coef = 0.01;
  EXPECT_EQ(expert_traffic(t).all_to_all.calls, 6 * 15);
  EXPECT_EQ(expert_traffic(t).counts, (Volume{2 * 15, 2 * 15 * 4 * 8}));
  EXPECT_EQ(expert_traffic(t).load, (Volume{2 * 15, 2 * 15 * 2 * 4 * 4 * 3 / 4}));
  t.tp = 2, t.recompute = Recompute::kNone;
  const i64 weights = 2 * (2 * 32 * 2 * 4) / 2;  // gradients of the choices' weights, summed over tp
  const i64 dense = [&] {
    Trial plain = t;
    plain.spec.experts = 0;
    return tensor_traffic(plain).all_reduce.bytes;
  }();
  EXPECT_EQ(tensor_traffic(t).all_reduce.bytes, dense + 15 * weights);
}

}  // namespace
}  // namespace sweep::shape
