// Evaluations of forked ranks: the loss of one rank's forward, however the model is split, and steps that go on as if
// there had been none.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench_kernels/step/train_step.h"
#include "tests/parity/layouts.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

struct Evaluated {
  double loss = NAN, step_after = NAN;  // means over all tokens
};

Evaluated evaluated(const Trial& trial, bool evaluates) {
  EXPECT_EQ(step::unsupported(trial, at::kCPU), std::nullopt);
  const ScratchFolder results;
  const auto file = [&](int rank) { return results.path() + "/" + std::to_string(rank); };
  const auto statuses = run_ranks(static_cast<int>(trial.world()), [&](const comm::GroupOptions& options) {
    const parallel::Mesh mesh = mesh_of(trial, options);
    step::TrainStep step(trial, at::kCPU, mesh, nullptr);
    step.run();
    step::Evaluation seen;
    if (evaluates) seen = step.evaluate();
    const auto times = step.run();
    std::ofstream out(file(options.rank));
    out.precision(17);
    out << seen.loss << ' ' << seen.tokens << ' ' << times.loss << ' ' << times.tokens;
    out.close();
    mesh[shape::Dimension::kWorld].barrier();
  });
  double losses = 0, tokens = 0, after = 0, tokens_after = 0;
  for (int rank = 0; rank < static_cast<int>(statuses.size()); ++rank) {
    EXPECT_EQ(statuses[static_cast<std::size_t>(rank)], 0) << "rank " << rank;
    double loss = 0, n = 0, step_loss = 0, step_n = 0;
    std::ifstream(file(rank)) >> loss >> n >> step_loss >> step_n;
    losses += loss * n, tokens += n, after += step_loss * step_n, tokens_after += step_n;
  }
  return {losses / tokens, after / tokens_after};
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

}  // namespace
}  // namespace sweep::testing
