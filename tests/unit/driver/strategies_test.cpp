// The table of strategies: what it shows can be laid out, and the document says what the code says.
#include "orchestrator/driver/strategies.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench_kernels/shape/parallel_dims.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"
#include "orchestrator/driver/selftest_results.h"
#include "schema/codec.h"
#include "tests/support/must.h"

namespace sweep::driver {
namespace {

std::string document_row(const Strategy& strategy) {
  std::string row = "| " + std::string(strategy.title) + " |";
  for (const auto& date : strategy.tested)
    row += " " + (date.empty() ? "never run" : std::string(date)) + " |";
  return row;
}

TEST(Strategies, TheDocumentHasTheTableOfTheCode) {
  std::ifstream in(std::string(SWEEP_SOURCE_DIR) + "/docs/parallelism.md");
  std::stringstream text;
  text << in.rdbuf();
  for (const Strategy& strategy : all_strategies())
    EXPECT_NE(text.str().find(document_row(strategy) + "\n"), std::string::npos) << document_row(strategy);
}

TEST(Strategies, EachCanBeLaidOutOnOneNodeAndOverTwoAndFour) {
  for (const i64 nodes : {1, 2, 4}) {
    SelfTestSetup setup;
    setup.nodes = nodes;
    for (const auto& proof : selftest_trials(setup)) {
      if (proof.strategy.starts_with("one_rank") && nodes > 1) {
        EXPECT_FALSE(proof.trial) << proof.strategy;
        continue;
      }
      ASSERT_TRUE(proof.trial) << proof.strategy << ": " << proof.why;
      const Trial& t = *proof.trial;
      const auto dims = shape::ParallelDims::make(t);
      EXPECT_TRUE(dims) << proof.strategy << ": " << (dims ? "" : dims.error().message);
      EXPECT_EQ(t.world(), t.nodes * t.gpus_per_node) << proof.strategy;
      EXPECT_EQ(t.global_batch_size, t.dp * t.micro_batch_size * t.grad_accum) << proof.strategy;
      EXPECT_EQ(shape::uneven_split(t).value_or(""), "") << proof.strategy;
      EXPECT_EQ(shape::pipeline_objection(t).value_or(""), "") << proof.strategy;
      EXPECT_EQ(backend_of(t), nodes > 1 ? Backend::kGloo : Backend::kShm);
    }
  }
}

TEST(Strategies, AGpuMaySumInAnotherOrderThanTheCpu) {
  Trial t;
  EXPECT_EQ(tolerance_of(t).gradient, 1e-5);
  t.hardware = "h100-sxm-80gb";
  EXPECT_EQ(tolerance_of(t).gradient, 1e-4);
}

TEST(Strategies, TooFewRanksAreSaidNotHidden) {
  SelfTestSetup setup;
  setup.ranks_per_node = 2;
  for (const auto& proof : selftest_trials(setup))
    EXPECT_EQ(proof.trial.has_value(), !proof.strategy.starts_with("hybrid")) << proof.strategy << proof.why;
}

TEST(Strategies, ALaterProofReplacesWhatItRanAgainAndNothingElse) {
  const auto folder = std::filesystem::temp_directory_path() / ("sweep-proofs-" + std::to_string(::getpid()));
  const auto file = folder / "deep" / "selftest.json";
  ASSERT_TRUE(add_selftest_results(file, {{{"tp", "shm"}, {"2026-01-01", true, "n1", "b"}},
                                          {{"dp", "shm"}, {"2026-01-01", true, "n1", "b"}}}));
  ASSERT_TRUE(add_selftest_results(file, {{{"tp", "shm"}, {"2026-02-02", false, "n2", "b"}}}));
  const auto read = must(read_selftest_results(file));
  EXPECT_EQ(read.size(), 2u);
  const std::string table = strategy_table(read);
  EXPECT_NE(table.find("FAILED here 2026-02-02"), std::string::npos) << table;
  EXPECT_NE(table.find("passed here 2026-01-01"), std::string::npos);
  EXPECT_NE(table.find("never run"), std::string::npos);
  std::ofstream(file) << "not json";
  EXPECT_FALSE(read_selftest_results(file));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sweep::driver
