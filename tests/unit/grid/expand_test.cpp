#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "bench_kernels/shape/parallel_dims.h"
#include "grid_text.h"
#include "schema/codec.h"

namespace sweep::grid {
namespace {

const std::string kH100 = kHead + "base: {hardware: h100-sxm-80gb";

TEST(GridExpand, ProductInFileOrderFirstAxisOutermost) {
  const auto e = expanded(kHead + "grid: {dp: [1, 2], seq_len: [64, 128], zero: [0]}\n");
  ASSERT_EQ(e.entries.size(), 4u);
  std::vector<std::pair<i64, i64>> seen;
  for (const auto& entry : e.entries) seen.emplace_back(entry.trial.dp, entry.trial.seq_len);
  EXPECT_THAT(
      seen, ::testing::ElementsAre(std::pair(1, 64), std::pair(1, 128), std::pair(2, 64), std::pair(2, 128)));
  EXPECT_EQ(e.entries[0].source, "g.yaml:3");
  EXPECT_EQ(e.entries[0].id, trial_id(e.entries[0].trial));
  EXPECT_EQ(e.entries[0].trial.model, "llama3-8b");
  EXPECT_EQ(e.counts.admitted, 4u);
}

TEST(GridExpand, ZipMovesTogetherAndRangesIncludeBothEnds) {
  const auto e =
      expanded(kHead +
               "grid: {grad_bucket_mb: {range: [5, 15, 5]}, threads: {pow2: [2, 4]}}\nzip: [{zero: [1, "
               "2], seq_len: [64, 128]}]\n");
  EXPECT_EQ(e.entries.size(), 12u);
  for (const auto& entry : e.entries) EXPECT_EQ(entry.trial.seq_len, entry.trial.zero * 64);
  EXPECT_EQ(e.entries.back().trial.grad_bucket_mb, 15);
  EXPECT_EQ(e.entries.back().trial.threads, 4);
}

TEST(GridExpand, AnAxisInTwoSectionsIsGivenTwice) {
  EXPECT_THAT(error_of(kHead + "base: {grad_clip: true}\ngrid: {grad_clip: [true, false]}\n"),
              AllOf(At(4, 8), IsError(ErrorKind::kConflict, "grad_clip")));
  EXPECT_THAT(error_of(kHead + "base: {grad_clip: true}\nderive: {grad_clip: 'dp > 1'}\n"),
              AllOf(At(3, 8), IsError(ErrorKind::kConflict, "grad_clip")));
}

TEST(GridExpand, DeriveSetsAnAxis) {
  const auto e = expanded(kHead + "grid: {dp: [1, 2]}\nderive: {grad_clip: 'dp > 1'}\n");
  ASSERT_EQ(e.entries.size(), 2u);
  EXPECT_FALSE(e.entries[0].trial.grad_clip);
  EXPECT_TRUE(e.entries[1].trial.grad_clip);
}

TEST(GridExpand, ABaseAloneIsOnePoint) {
  const auto e = expanded(kHead + "base: {micro_batch_size: 2, grad_accum: 3}\n");
  ASSERT_EQ(e.admitted().size(), 1u);
  EXPECT_EQ(e.entries[0].trial.global_batch_size, 6);
  EXPECT_EQ(e.counts.points, 1u);
}

TEST(GridExpand, OnGpusDpFollowsFromNodesAndTheOtherDegrees) {
  const auto e = expanded(kH100 + "}\ngrid: {nodes: [1, 2], tp: [4], pp: [2]}\n");
  ASSERT_EQ(e.admitted().size(), 2u);
  EXPECT_EQ(e.entries[0].trial.gpus_per_node, 8);
  EXPECT_EQ(e.entries[0].trial.dp, 1);
  EXPECT_EQ(e.entries[1].trial.dp, 2);
}

TEST(GridExpand, OnGpusAGivenDpSetsTheRanksPerNode) {
  const auto e = expanded(kH100 + "}\ngrid: {nodes: [2], dp: [3, 4, 32], tp: [2]}\n");
  ASSERT_EQ(e.entries.size(), 3u);
  EXPECT_EQ(e.entries[0].trial.gpus_per_node, 3);
  EXPECT_EQ(e.entries[1].trial.gpus_per_node, 4);
  EXPECT_EQ(e.entries[2].rule, "rank_algebra");
  EXPECT_EQ(e.entries[2].reason,
            "gpus_per_node = dp x tp x pp x cp / nodes = 32 x 2 x 1 x 1 / 2 = 32 is more than the 8 of "
            "h100-sxm-80gb");
}

TEST(GridExpand, OnCpuRanksPerNodeFollow) {
  const auto e = expanded(kHead + "grid: {nodes: [1, 2], tp: [1, 4]}\n");
  ASSERT_EQ(e.entries.size(), 4u);
  EXPECT_EQ(e.entries[1].trial.gpus_per_node, 4);
  EXPECT_EQ(e.entries[1].trial.dp, 1);
  EXPECT_EQ(e.entries[2].rule, "rank_algebra");
  EXPECT_EQ(e.entries[2].reason,
            "gpus_per_node = dp x tp x pp x cp / nodes = 1 x 1 x 1 x 1 / 2 = 0.50 is not whole");
  EXPECT_EQ(e.entries[3].trial.gpus_per_node, 2);
  const auto given = expanded(kHead + "grid: {gpus_per_node: [4], tp: [2, 3]}\n");
  EXPECT_EQ(given.entries[0].trial.dp, 2);
  EXPECT_EQ(given.entries[1].reason,
            "dp = nodes x gpus_per_node / (tp x pp x cp) = 1 x 4 / (3 x 1 x 1) = 1.33 is not whole");
}

TEST(GridExpand, CpuAndGpuInOneGrid) {
  const auto e = expanded(kHead + "grid: {hardware: [cpu, h100-sxm-80gb], tp: [2]}\n");
  ASSERT_EQ(e.admitted().size(), 2u);
  EXPECT_EQ(e.entries[0].trial.gpus_per_node, 2);
  EXPECT_EQ(e.entries[0].trial.dp, 1);
  EXPECT_EQ(e.entries[1].trial.gpus_per_node, 8);
  EXPECT_EQ(e.entries[1].trial.dp, 4);
}

TEST(GridExpand, BothSidesOfTheRankAlgebraMustAgree) {
  const auto e = expanded(kHead + "grid: {gpus_per_node: [4, 16], dp: [4, 8], hardware: [h100-sxm-80gb]}\n");
  ASSERT_EQ(e.entries.size(), 4u);
  EXPECT_TRUE(e.entries[0].admitted);
  EXPECT_EQ(e.entries[1].reason,
            "nodes x gpus_per_node = 1 x 4 = 4, but dp x tp x pp x cp = 8 x 1 x 1 x 1 = 8");
  EXPECT_EQ(e.entries[2].reason, "gpus_per_node = 16 is more than the 8 of h100-sxm-80gb");
  EXPECT_EQ(e.entries[2].rule, "rank_algebra");
  EXPECT_EQ(e.entries[2].verdict, Outcome::kPruned);
}

TEST(GridExpand, ExpertsDivideDpTimesCp) {
  const auto e = expanded(kHead + "grid: {dp: [4], ep: [2, 3]}\n");
  EXPECT_TRUE(e.entries[0].admitted);
  EXPECT_EQ(e.entries[1].reason, "dp x cp / ep = 4 x 1 / 3 = 1.33 is not whole");
}

TEST(GridExpand, BatchAlgebra) {
  const auto follows =
      expanded(kHead + "base: {global_batch_size: 256}\ngrid: {dp: [2, 3], micro_batch_size: [2]}\n");
  EXPECT_EQ(follows.entries[0].trial.grad_accum, 64);
  EXPECT_EQ(follows.entries[1].rule, "divisibility");
  EXPECT_EQ(follows.entries[1].reason,
            "grad_accum = global_batch_size / (dp x micro_batch_size) = 256 / (3 x 2) = 42.67 is not whole");
  const auto accum = expanded(kHead + "grid: {dp: [2], micro_batch_size: [3], grad_accum: [4]}\n");
  EXPECT_EQ(accum.entries[0].trial.global_batch_size, 24);
  const auto neither = expanded(kHead + "grid: {dp: [2], micro_batch_size: [3]}\n");
  EXPECT_EQ(neither.entries[0].trial.global_batch_size, 6);
  EXPECT_EQ(neither.entries[0].trial.grad_accum, 1);
  const auto both = expanded(kHead + "grid: {dp: [2], grad_accum: [4], global_batch_size: [8, 9]}\n");
  EXPECT_TRUE(both.entries[0].admitted);
  EXPECT_EQ(both.entries[1].reason,
            "dp x micro_batch_size x grad_accum = 2 x 1 x 4 = 8, but global_batch_size = 9");
}

TEST(GridExpand, EveryAdmittedTrialKeepsTheRankAlgebraOfShape) {
  const auto e = expanded(kH100 +
                          ", global_batch_size: 64}\ngrid: {nodes: [1, 2, 3], tp: [1, 2, 3], pp: [1, 2], cp: "
                          "[1, 2], ep: [1, 2], micro_batch_size: [1, 2, 3]}\n");
  EXPECT_GT(e.admitted().size(), 10u);
  for (const auto& entry : e.admitted()) {
    const auto dims = shape::ParallelDims::make(entry.trial);
    EXPECT_TRUE(dims) << dims.error().message;
    EXPECT_EQ(entry.trial.dp * entry.trial.micro_batch_size * entry.trial.grad_accum, 64);
  }
  EXPECT_EQ(e.counts.points, e.counts.admitted + e.counts.pruned + e.counts.duplicates);
}

TEST(GridExpand, WhereDropsAndIsListedWithItsNumbers) {
  const std::string text =
      kHead + "grid: {tp: [1, 2, 4], pp: [1, 2]}\nwhere:\n  - tp * pp <= 4\n  - pp == 1 or tp > 1\n";
  const auto e = expanded(text);
  EXPECT_EQ(e.counts.dropped_where, 2u);
  ASSERT_EQ(e.with_rule("where").size(), 2u);
  EXPECT_EQ(e.with_rule("where")[0].reason,
            "excluded by where: pp is 2, tp is 1 (`pp == 1 or tp > 1`, g.yaml:6:5)");
  EXPECT_EQ(e.with_rule("where")[1].reason,
            "excluded by where: tp is 4, pp is 2 (`tp * pp <= 4`, g.yaml:5:5)");
  EXPECT_EQ(e.with_rule("where")[1].verdict, Outcome::kPruned);
  const auto unlisted = expanded(text, 0);
  EXPECT_EQ(unlisted.counts.dropped_where, 2u);
  EXPECT_TRUE(unlisted.with_rule("where").empty());
  EXPECT_EQ(expanded(text, 1).with_rule("where").size(), 1u);
}

// Whether drops are listed one by one or skipped whole, the counts and what is left must be the same.
TEST(GridExpand, ListingDropsChangesNoCount) {
  const std::string text =
      kH100 + ", global_batch_size: 48}\n" +
      "grid: {nodes: [1, 2, 3], tp: [1, 2, 4, 8, 16], zero: [0, 1], micro_batch_size: [1, 2, 3, 5]}\n"
      "where: [tp <= gpus_per_node, zero == 0 or dp > 1, micro_batch_size != 5 or nodes > 1, grad_accum / 2 "
      ">= 1]\n"
      "exclude: [{tp: 2, micro_batch_size: [1, 3]}]\n";
  const auto all = expanded(text, 1'000'000), some = expanded(text, 7), none = expanded(text, 0);
  for (const auto* e : {&some, &none}) {
    EXPECT_EQ(e->counts.points, all.counts.points);
    EXPECT_EQ(e->counts.admitted, all.counts.admitted);
    EXPECT_EQ(e->counts.pruned, all.counts.pruned);
    EXPECT_EQ(e->counts.dropped_where, all.counts.dropped_where);
    EXPECT_EQ(e->counts.dropped_exclude, all.counts.dropped_exclude);
  }
  EXPECT_EQ(all.counts.points, 120u);
  EXPECT_GT(all.counts.dropped_exclude, 0u);
  EXPECT_EQ(all.counts.points,
            all.counts.admitted + all.counts.pruned + all.counts.dropped_where + all.counts.dropped_exclude);
  EXPECT_EQ(all.entries.size(), 120u);
}

TEST(GridExpand, AClauseThatIsFalseWinsOverOneWithoutAValue) {
  // dp does not come out whole for tp 3; pp == 2 is dropped all the same, and `zero == 0 or dp > 1` never
  // asks for dp.
  const auto e = expanded(kH100 + "}\ngrid: {tp: [3], pp: [1, 2]}\nwhere: [zero == 0 or dp > 1, pp == 1]\n");
  EXPECT_EQ(e.with_rule("rank_algebra").size(), 1u);
  EXPECT_EQ(e.with_rule("where").size(), 1u);
}

TEST(GridExpand, WhereThatDoesNotComeOutWholePrunesWithTheEquation) {
  const auto e = expanded(kHead + "grid: {seq_len: [64, 100]}\nwhere: [seq_len / 64 >= 1]\n");
  ASSERT_EQ(e.with_rule("divisibility").size(), 1u);
  EXPECT_EQ(e.with_rule("divisibility")[0].reason,
            "where `seq_len / 64 >= 1`: seq_len / 64 = 100 / 64 = 1.56 is not whole (g.yaml:4:9)");
}

TEST(GridExpand, WhereThatReadsAnAbsentValueSaysSoOfEachAutomaticSize) {
  const auto e = expanded(kHead +
                          "base: {micro_batch_size: {auto: [1, 3]}}\n"
                          "grid: {memory_cap_bytes: [null, 8000000000]}\nwhere: [memory_cap_bytes > 1]\n");
  EXPECT_EQ(e.admitted().size(), 3u);
  EXPECT_EQ(e.with_rule("where").size(), 3u);
  EXPECT_EQ(e.with_rule("divisibility").size(), 0u);
  const auto uneven =
      expanded(kHead + "base: {micro_batch_size: {auto: [2, 4]}}\nwhere: [micro_batch_size / 2 >= 1]\n");
  EXPECT_EQ(uneven.with_rule("divisibility").size(), 1u) << "micro_batch_size 3 is not left out unsaid";
}

TEST(GridExpand, ExcludeMatchesZeroOfEitherSign) {
  const auto e = expanded(
      "name: t\nworkload:\n  command: [train, \"{lr}\"]\n  axes:\n    lr: {type: number, default: 0.1}\n"
      "base: {hardware: cpu}\ngrid: {lr: [-0.0, 0.5]}\nexclude: [{lr: 0}]\n");
  EXPECT_EQ(e.admitted().size(), 1u);
}

TEST(GridExpand, ExcludeMatchesPartly) {
  const auto e = expanded(
      kHead +
      "grid: {tp: [1, 2, 4], pp: [1, 2], memory_cap_bytes: [null, 4096]}\nexclude:\n  - {tp: [2, 4], pp: "
      "2}\n  - {memory_cap_bytes: null, tp: 1}\n  - {model: llama3-8b, tp: 4, memory_cap_bytes: 4096}\n");
  EXPECT_EQ(e.counts.dropped_exclude, 7u);
  ASSERT_FALSE(e.with_rule("exclude").empty());
  EXPECT_EQ(e.with_rule("exclude")[0].reason, "exclude matches {memory_cap_bytes: null, tp: 1} (g.yaml:6:5)");
  EXPECT_EQ(e.counts.admitted, 5u);
}

TEST(GridExpand, IncludedPointsBypassWhereAndStartFromBase) {
  const auto e = expanded(kHead +
                          "base: {seq_len: 64}\ngrid: {dp: [1, 2], zero: [1]}\nwhere: [dp == 1]\ninclude:\n  "
                          "- {dp: 2, zero: 1}\n  - {dp: 4}\n  - {dp: 1, zero: 1}\n");
  ASSERT_EQ(e.admitted().size(), 3u);
  EXPECT_EQ(e.entries[0].trial.dp, 2);
  EXPECT_EQ(e.entries[0].source, "g.yaml:7");
  EXPECT_EQ(e.entries[1].trial.dp, 4);
  EXPECT_EQ(e.entries[1].trial.zero, 0);
  EXPECT_EQ(e.entries[1].trial.seq_len, 64);
  EXPECT_EQ(e.counts.duplicates, 1u);  // dp 1, zero 1: named twice
  EXPECT_EQ(e.counts.dropped_where,
            1u);  // dp 2 of the grid; the same trial is included, so it is not listed as dropped
  EXPECT_TRUE(e.with_rule("where").empty());
  const auto alone = expanded(kHead + "include: [{dp: 2}, {hardware: h100-sxm-80gb, nodes: 2, tp: 3}]\n");
  EXPECT_EQ(alone.counts.admitted, 1u);
  EXPECT_EQ(alone.counts.pruned, 1u);
  EXPECT_EQ(alone.counts.points, 0u);
}

TEST(GridExpand, DeriveSetsAxesAndLabels) {
  const auto e =
      expanded(kHead +
               "grid: {dp: [1, 2, 3], seq_len: [64]}\nderive:\n  tokens: global_batch_size * seq_len\n  "
               "global_batch_size: dp * 8\n  memory_cap_bytes: 1024 * 1024 * dp\n  ratio: seq_len / 128.0\n  "
               "big: tokens > 512 and model == \"llama3-8b\"\n  what: precision\n");
  ASSERT_EQ(e.admitted().size(), 3u);
  const Trial& t = e.entries[1].trial;
  EXPECT_EQ(t.global_batch_size, 16);
  EXPECT_EQ(t.grad_accum, 8);
  EXPECT_EQ(t.memory_cap_bytes, 2 << 20);
  EXPECT_EQ(nlohmann::json::parse(t.labels),
            nlohmann::json::parse(R"({"tokens": 1024, "ratio": 0.5, "big": true, "what": "fp32"})"));
}

TEST(GridExpand, DeriveThatHasNoValuePrunes) {
  const auto e =
      expanded(kHead + "grid: {dp: [1, 2], seq_len: [96]}\nderive: {threads: 3 / dp, tp: dp - 1}\n");
  ASSERT_EQ(e.entries.size(), 2u);
  EXPECT_EQ(e.entries[0].rule, "derive");
  EXPECT_EQ(e.entries[0].reason, "tp = dp - 1 = 1 - 1 = 0 is outside 1 to 1000000");
  EXPECT_EQ(e.entries[1].rule, "divisibility");
  EXPECT_EQ(e.entries[1].reason, "threads = 3 / dp = 3 / 2 = 1.50 is not whole");
  const auto zero = expanded(kHead + "grid: {dp: [1]}\nderive: {x: 1 + 3 // (dp - 1)}\n");
  EXPECT_EQ(zero.entries[0].reason, "x = 1 + 3 // (dp - 1): 3 // (dp - 1) = 3 // (1 - 1) divides by zero");
}

TEST(GridExpand, OverflowOfAnExpressionIsAnError) {
  const auto grid = must(read_text(
      kHead + "grid: {seq_len: [100000000]}\nwhere: [seq_len * seq_len * seq_len > 1]\n", "g.yaml"));
  const auto counts = expand(grid, [](PlanEntry&&) { return true; });
  ASSERT_FALSE(counts);
  EXPECT_THAT(counts.error(),
              AllOf(At(4, 9), IsError(ErrorKind::kInvalidValue, "seq_len * seq_len * seq_len > 1")));
}

TEST(GridExpand, DegreesWhoseProductIsHugePrune) {
  const auto e = expanded(kHead + "grid: {dp: [1000000], tp: [1000000], pp: [1000000], cp: [1000000]}\n");
  ASSERT_EQ(e.entries.size(), 1u);
  EXPECT_EQ(e.entries[0].rule, "rank_algebra");
}

TEST(GridExpand, TrialsNamedTwiceAreMergedAndCounted) {
  const auto e = expanded(kHead + "grid: {tp: [1, 2, 2], zero: [0, 0]}\n");
  EXPECT_EQ(e.counts.points, 6u);
  EXPECT_EQ(e.counts.admitted, 2u);
  EXPECT_EQ(e.counts.duplicates, 4u);
}

TEST(GridExpand, IdsDoNotDependOnHowTheGridIsWritten) {
  const auto ids = [](const std::string& text) {
    std::set<std::string> out;
    for (const auto& entry : expanded(text).entries) out.insert(entry.id);
    return out;
  };
  const auto a = ids(kHead + "grid: {dp: [1, 2], seq_len: [64, 128]}\n");
  EXPECT_EQ(a, ids("grid: {seq_len: [128, 64], dp: [2, 1], zero: [0]}\nmodel: llama3-8b\nname: other\nbase: "
                   "{hardware: cpu, nodes: 1, precision: fp32}\n"));
  EXPECT_EQ(a, ids(kHead + "grid: {dp: [1, 2], seq_len: [64, 128]}\nderive: {label: dp}\n"));
  EXPECT_EQ(a.size(), 4u);
}

TEST(GridExpand, TheSinkStopsIt) {
  const auto grid = read_text(kHead + "grid: {seq_len: {range: [1, 1000, 1]}}\n", "g.yaml");
  ASSERT_TRUE(grid);
  int seen = 0;
  const auto counts = expand(*grid, [&](PlanEntry&&) { return ++seen < 5; });
  ASSERT_TRUE(counts);
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(counts->admitted, 5u);
}

TEST(GridExpand, ModelDimensionsStandInExpressions) {
  const auto e = expanded(
      "name: t\ngrid: {model: [gpt2, llama3-8b], pp: [1, 16]}\nwhere: [layers >= pp, params < 1000000000 or "
      "pp == 16, \"heads in [12, 32]\"]\n");
  ASSERT_EQ(e.admitted().size(), 2u);
  EXPECT_EQ(e.admitted()[0].trial.model, "gpt2");
  EXPECT_EQ(e.admitted()[1].trial.pp, 16);
}

}  // namespace
}  // namespace sweep::grid
