// Evaluations of forked ranks: the loss of one rank's forward, however the model is split, and steps that go on as if
// there had been none.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bench_kernels/step/train_step.h"
#include "tests/parity/layouts.h"

namespace sweep::testing {
namespace {

// Means over all tokens; of text metrics over those of the ranks that have them.
struct Evaluated {
  double loss = NAN, step_after = NAN, bleu = NAN, rouge_l = NAN;
};

class Mean {
 public:
  void add(double value, double weight) { sum_ += value * weight, weight_ += weight; }
  double value() const { return sum_ / weight_; }

 private:
  double sum_ = 0, weight_ = 0;
};

Evaluated evaluated(const Trial& trial, bool evaluates, i64 steps_before = 1) {
  const auto ranks = on_ranks(trial,
                              [&](step::TrainStep& step, int) {
                                for (i64 i = 0; i < steps_before; ++i) step.run();
                                step::Evaluation seen;
                                if (evaluates) seen = step.evaluate();
                                const auto after = step.run();
                                const auto text = seen.text.value_or(step::TextScores());
                                return std::vector<double>{seen.loss,
                                                           static_cast<double>(seen.tokens),
                                                           after.loss,
                                                           static_cast<double>(after.tokens),
                                                           seen.text ? static_cast<double>(seen.tokens) : 0,
                                                           text.bleu,
                                                           text.rouge_l};
                              },
                              {.lr = 1e-2});
  Mean loss, after, bleu, rouge_l;
  for (const auto& rank : ranks) {
    loss.add(rank[0], rank[1]), after.add(rank[2], rank[3]);
    bleu.add(rank[5], rank[4]), rouge_l.add(rank[6], rank[4]);
  }
  return {loss.value(), after.value(), bleu.value(), rouge_l.value()};
}

Trial with_evaluation(i64 dp, i64 tp, i64 pp, i64 cp, i64 ep = 1) {
  Trial t = with_degrees(tiny_trial(), dp, tp, pp, cp, ep);
  t.eval_batch_size = 4 / dp, t.eval_batches = 2;
  return t;
}

TEST(Evaluations, EveryLayoutHasTheLossOfOneRankAndLeavesTheStepsAsTheyWere) {
  const double alone = evaluated(with_evaluation(1, 1, 1, 1), true).loss;
  ASSERT_TRUE(std::isfinite(alone));
  std::vector<Trial> trials{with_evaluation(2, 1, 1, 1), with_evaluation(1, 2, 1, 1),
                            with_evaluation(1, 1, 2, 1), with_evaluation(1, 1, 1, 2),
                            with_evaluation(2, 2, 1, 1)};
  trials.push_back(with_evaluation(1, 2, 1, 1)), trials.back().sp = true;
  trials.push_back(with_evaluation(1, 2, 2, 1)), trials.back().sp = true;
  for (const bool reshard : {true, false})
    for (const i64 prefetch : {0, 2}) {
      trials.push_back(with_evaluation(2, 1, 1, 1));
      trials.back().zero = 3, trials.back().reshard_after_forward = reshard,
      trials.back().prefetch_forward = prefetch;
    }
  trials.push_back(with_evaluation(2, 1, 1, 1)), trials.back().zero = 2;
  trials.push_back(with_evaluation(1, 1, 2, 1)), trials.back().schedule = Schedule::kInterleaved,
                                                 trials.back().vpp = 2;
  trials.push_back(with_evaluation(1, 1, 2, 1)), trials.back().schedule = Schedule::kZeroBubble;
  trials.push_back(with_evaluation(1, 1, 1, 1)), trials.back().recompute = Recompute::kFull;
  trials.push_back(with_evaluation(2, 1, 1, 1)), trials.back().offload = Offload::kParameters;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Evaluated with = evaluated(trials[i], true), without = evaluated(trials[i], false);
    EXPECT_NEAR(with.loss, alone, 1e-5 * alone) << "trial " << i;
    EXPECT_EQ(with.step_after, without.step_after) << "trial " << i;
  }
}

// With a table that embedding and head share, and with experts, against one rank of the same model.
TEST(Evaluations, TiedTablesAndExpertsTooHaveTheLossOfOneRank) {
  const auto compare = [](auto change, Trial split) {
    Trial alone = with_evaluation(1, 1, 1, 1);
    change(alone), change(split);
    const double loss = evaluated(alone, true).loss;
    EXPECT_NEAR(evaluated(split, true).loss, loss, 1e-5 * loss);
  };
  Trial sharded = with_evaluation(2, 1, 1, 1);
  sharded.zero = 3;
  const auto tied = [](Trial& t) { t.spec.tie_embeddings = true; };
  compare(tied, sharded);
  compare(tied, with_evaluation(1, 1, 2, 1));
  const auto experts = [](Trial& t) {
    t.spec.experts = 4, t.spec.experts_per_token = 2, t.routing = Routing::kLearned;
  };
  compare(experts, with_evaluation(2, 1, 1, 1, 2));
  const auto packed = [](Trial& t) { t.lengths = "uniform 3 9", t.packing = true; };
  compare(packed, with_evaluation(1, 2, 1, 1));
}

// The likeliest token of a row is the same wherever its logits are; after some steps on the same batch many are right.
TEST(Evaluations, TextMetricsAreThoseOfOneRank) {
  Trial alone = with_evaluation(1, 1, 1, 1);
  alone.eval_metrics = EvalMetrics::kNgram;
  const Evaluated one = evaluated(alone, true, 12);
  EXPECT_GT(one.bleu, 0.05);
  EXPECT_GT(one.rouge_l, one.bleu);
  EXPECT_LT(one.rouge_l, 1);
  std::vector<Trial> trials{with_evaluation(2, 1, 1, 1), with_evaluation(1, 2, 1, 1),
                            with_evaluation(1, 1, 2, 1), with_evaluation(1, 4, 1, 1)};
  trials.push_back(with_evaluation(2, 2, 1, 1)), trials.back().sp = true, trials.back().zero = 3;
  trials[3].vocab_multiple = 20;  // the last rank has 4 entries and padding
  for (std::size_t i = 0; i < trials.size(); ++i) {
    trials[i].eval_metrics = EvalMetrics::kNgram;
    const Evaluated split = evaluated(trials[i], true, 12);
    EXPECT_NEAR(split.rouge_l, one.rouge_l, 1e-9) << "trial " << i;
    EXPECT_NEAR(split.bleu, one.bleu, 1e-9) << "trial " << i;
    EXPECT_EQ(split.step_after, evaluated(trials[i], false, 12).step_after) << "trial " << i;
  }
}

// Each sequence counts by its tokens, whichever rank has it.
TEST(Evaluations, TextMetricsOfUnequalSequencesAreThoseOfOneRank) {
  Trial alone = with_evaluation(1, 1, 1, 1), split = with_evaluation(2, 1, 1, 1);
  for (Trial* t : {&alone, &split}) t->eval_metrics = EvalMetrics::kNgram, t->lengths = "uniform 3 9";
  const Evaluated one = evaluated(alone, true, 12);
  EXPECT_GT(one.rouge_l, 0);
  const Evaluated two = evaluated(split, true, 12);
  EXPECT_NEAR(two.rouge_l, one.rouge_l, 1e-9);
  EXPECT_NEAR(two.bleu, one.bleu, 1e-9);
}

}  // namespace
}  // namespace sweep::testing
