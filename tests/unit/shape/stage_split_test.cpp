#include "bench_kernels/shape/stage_split.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"

namespace sweep::shape {
namespace {

ModelSpec spec_of(i64 layers, i64 vocab) {
  ModelSpec s;
  s.layers = layers, s.hidden_size = 64, s.heads = s.kv_heads = 4, s.head_dim = 16;
  s.intermediate_size = 128, s.vocab_size = vocab;
  return s;
}

std::vector<i64> layers_of(const std::vector<StageShare>& shares) {
  std::vector<i64> layers;
  for (const StageShare& s : shares) layers.push_back(s.layers);
  return layers;
}

TEST(StageSplit, CoversAllLayersOnceInOrderWithTheEndsAtTheEnds) {
  for (const NamedModel& model : all_models()) {
    for (const i64 stages : {1, 2, 3, 4, 8}) {
      if (stages > model.spec.layers) continue;
      const auto shares = split_stages(model.spec, stages, 1024);
      i64 next = 0;
      for (const StageShare& s : shares) {
        EXPECT_EQ(s.first_layer, next);
        EXPECT_GE(s.layers, 1);
        EXPECT_EQ(s.embedding, &s == &shares.front());
        EXPECT_EQ(s.head, &s == &shares.back());
        next += s.layers;
      }
      EXPECT_EQ(next, model.spec.layers);
    }
  }
}

TEST(StageSplit, AnswersDoNotDependOnThoseBefore) {
  const ModelSpec one = spec_of(7, 64), other = spec_of(9, 64);
  const auto first = layers_of(split_stages(one, 2, 64));
  const auto last = layers_of(split_stages(other, 3, 64));
  for (const i64 stages : {1, 2, 3, 4}) {
    const auto shares = layers_of(split_stages(one, stages, 64));
    EXPECT_EQ(std::ssize(shares), stages);
    EXPECT_EQ(layers_of(split_stages(one, stages, 64)), shares);
    EXPECT_EQ(layers_of(split_stages(one, 2, 64)), first);
    EXPECT_EQ(layers_of(split_stages(other, 3, 64)), last);
  }
}

TEST(StageSplit, TheLengthOrTheVocabularyAloneChangesTheAnswer) {
  const ModelSpec large = spec_of(8, 4000), small = spec_of(8, 16);
  const std::vector<i64> uneven{6, 2}, even{4, 4};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(layers_of(split_stages(large, 2, 128)), uneven);
    EXPECT_EQ(layers_of(split_stages(large, 2, 65536)), even) << "attention outweighs the head";
    EXPECT_EQ(layers_of(split_stages(large, 2, 128)), uneven);
    EXPECT_EQ(layers_of(split_stages(small, 2, 128)), even) << "the head is small";
  }
}

TEST(StageSplit, LayersWithoutExpertsAreTheFirstOfTheFirstStages) {
  ModelSpec spec = *find_model("tiny-deepseek");
  spec.layers = 6, spec.dense_layers = 3;
  const auto dense = [&](i64 stages) {
    std::vector<i64> of;
    for (const StageShare& s : split_stages(spec, stages, 64)) of.push_back(s.dense_layers);
    return of;
  };
  EXPECT_EQ(dense(1), (std::vector<i64>{3}));
  EXPECT_EQ(dense(6), (std::vector<i64>{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(dense(3), (std::vector<i64>{2, 1, 0}));
}

// The cost of the most expensive stage, by trying every split.
double best_of_all(const std::vector<i64>& layers, std::size_t stage, i64 left, double layer, double head) {
  if (stage + 1 == layers.size()) return static_cast<double>(left) * layer + head;
  double best = 1e300;
  for (i64 n = 1; n <= left - static_cast<i64>(layers.size() - stage - 1); ++n)
    best = std::min(best, std::max(static_cast<double>(n) * layer,
                                   best_of_all(layers, stage + 1, left - n, layer, head)));
  return best;
}

TEST(StageSplit, NoOtherSplitHasACheaperWorstStage) {
  for (const i64 vocab : {16, 1000, 5000, 20'000}) {
    for (i64 layers = 2; layers <= 10; ++layers) {
      for (i64 stages = 2; stages <= std::min<i64>(layers, 4); ++stages) {
        const ModelSpec spec = spec_of(layers, vocab);
        ModelSpec none = spec, one = spec;
        none.layers = 0, one.layers = 1;
        const double head = model_flops_per_token(none, 128);
        const double layer = model_flops_per_token(one, 128) - head;
        const auto shares = layers_of(split_stages(spec, stages, 128));
        double worst = 0;
        for (std::size_t s = 0; s < shares.size(); ++s)
          worst =
              std::max(worst, static_cast<double>(shares[s]) * layer + (s + 1 == shares.size() ? head : 0));
        EXPECT_NEAR(worst, best_of_all(shares, 0, layers, layer, head), 1e-6 * worst);
      }
    }
  }
}

TEST(StageSplit, AnExpensiveHeadTakesLayersFromTheLastStageAndTheTableFromTheFirst) {
  EXPECT_EQ(layers_of(split_stages(spec_of(8, 4000), 2, 128)), (std::vector<i64>{6, 2}));
  const auto even = layers_of(split_stages(spec_of(7, 16), 3, 128));
  EXPECT_EQ(even, (std::vector<i64>{2, 3, 2}));
}

TEST(StageSplit, ListedLayersStandAsTheyAreListed) {
  Trial t;
  t.spec = spec_of(8, 16), t.pp = 3, t.stage_layers = "1 5 2";
  t.spec.experts = 4, t.spec.dense_layers = 2;
  EXPECT_EQ(pipeline_objection(t), std::nullopt);
  const auto shares = split_stages(t, 3);
  EXPECT_EQ(layers_of(shares), (std::vector<i64>{1, 5, 2}));
  EXPECT_EQ(shares[2].first_layer, 6);
  EXPECT_EQ(shares[1].dense_layers, 1);
  EXPECT_TRUE(shares[0].embedding && shares[2].head && !shares[1].embedding && !shares[1].head);
  t.stage_layers = "";
  EXPECT_EQ(layers_of(split_stages(t, 3)), layers_of(split_stages(t.spec, 3, t.seq_len)));
  for (const char* wrong : {"1 5", "1 5 3", "4 4", "0 6 2", "1 5 2 ", " 1 5 2", "1  5 2", "1,5,2", "1 5 x",
                            "-1 7 2", "1 9223372036854775807 2"}) {
    t.stage_layers = wrong;
    EXPECT_TRUE(pipeline_objection(t)) << wrong;
  }
  t.stage_layers = "1 5 2", t.pp = 1;
  EXPECT_TRUE(pipeline_objection(t)) << "one stage";
  t.pp = 3, t.schedule = Schedule::kInterleaved, t.vpp = 2, t.grad_accum = 3;
  EXPECT_TRUE(pipeline_objection(t)) << "chunks";
}

TEST(PipelineTraffic, EndsSendHalfOfWhatTheMiddleSends) {
  Trial t;
  t.spec = spec_of(8, 128);
  t.pp = 4, t.grad_accum = 6, t.micro_batch_size = 2, t.seq_len = 32;
  const i64 message = 2 * 32 * 64 * 4;
  EXPECT_EQ(pipeline_traffic(t, 0).bytes, 6 * message);
  EXPECT_EQ(pipeline_traffic(t, 1).bytes, 12 * message);
  EXPECT_EQ(pipeline_traffic(t, 3).sends, 6);
  t.vpp = 2, t.tp = 2, t.sp = true, t.precision = Precision::kBf16, t.cp = 2;
  EXPECT_EQ(pipeline_traffic(t, 0).sends, 6 + 12);
  EXPECT_EQ(pipeline_traffic(t, 1).bytes, 24 * message / 2 / 2 / 2);
}

}  // namespace
}  // namespace sweep::shape
