// Tokens of documents beside all tokens: rates, MFU and cost.
#include <gtest/gtest.h>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/metrics/derive.h"

namespace sweep::metrics {
namespace {

Trial eight_gpus() {
  Trial t;
  t.model = "llama3-8b", t.spec = *shape::find_model("llama3-8b");
  t.hardware = "h100-sxm-80gb", t.precision = Precision::kBf16;
  t.dp = t.gpus_per_node = t.global_batch_size = 8;
  t.seq_len = 4096;
  return t;
}

std::vector<RankRecord> steps_of(i64 ms, i64 ranks) {
  std::vector<RankRecord> out(static_cast<std::size_t>(ranks));
  for (i64 rank = 0; rank < ranks; ++rank) {
    RankRecord& r = out[static_cast<std::size_t>(rank)];
    r.rank = rank, r.outcome = Outcome::kOk, r.samples.resize(1);
    r.samples[0].step_ns = ms * 1'000'000, r.samples[0].tokens = 4096;
  }
  return out;
}

TEST(Useful, UsefulTokensAreThoseOfDocuments) {
  Trial full = eight_gpus(), padded = full, packed = full;
  padded.lengths = packed.lengths = "fixed 1024", packed.packing = true;
  const auto of = [](const Trial& t) { return derive(t, steps_of(500, 8), nullptr); };
  const Metrics none = of(full), quarter = of(padded), all = of(packed);
  EXPECT_DOUBLE_EQ(*none.useful_fraction, 1);
  EXPECT_DOUBLE_EQ(*none.useful_tokens_per_s, *none.tokens_per_s);
  EXPECT_DOUBLE_EQ(*none.useful_mfu, *none.mfu);
  EXPECT_DOUBLE_EQ(*none.useful_cost_per_mt, *none.cost_per_mt);
  EXPECT_DOUBLE_EQ(*quarter.useful_fraction, 0.25);  // 1024 of 4096
  EXPECT_DOUBLE_EQ(*quarter.tokens_per_s, *none.tokens_per_s);
  EXPECT_DOUBLE_EQ(*quarter.mfu, *none.mfu);
  EXPECT_DOUBLE_EQ(*quarter.useful_tokens_per_s, *none.tokens_per_s / 4);
  EXPECT_DOUBLE_EQ(*quarter.useful_tokens_per_s_gpu, *none.tokens_per_s_gpu / 4);
  EXPECT_DOUBLE_EQ(*quarter.useful_cost_per_mt, *none.cost_per_mt * 4);
  EXPECT_DOUBLE_EQ(*all.useful_fraction, 1);
  EXPECT_DOUBLE_EQ(*all.useful_mfu, *all.mfu);
  EXPECT_DOUBLE_EQ(*quarter.useful_mfu, *all.mfu / 4) << "the same documents, a quarter of them";
  const double attention = 12.0 * 32 * 4096 * 4096 * 4096 / 0.5 / 989.4e12;
  EXPECT_NEAR(*none.mfu - *all.mfu, attention * 3 / 4, 1e-9) << "documents see a quarter as many keys";
  Metrics stated;
  stated.tokens_per_s = 1e5;
  EXPECT_FALSE(derive_from_rate(full, stated).useful_fraction) << "what others padded nobody knows";
  EXPECT_DOUBLE_EQ(*derive_from_rate(padded, stated).useful_tokens_per_s, 25'000);
  stated.useful_fraction = 0.5;
  EXPECT_EQ(derive_from_rate(padded, stated).useful_fraction, 0.5) << "stated";
  EXPECT_FALSE(derive_from_rate(full, stated).useful_mfu) << "whose documents are not known";
  EXPECT_DOUBLE_EQ(*derive_from_rate(full, stated).useful_tokens_per_s, 5e4);
  stated.useful_fraction = of(padded).useful_fraction;
  EXPECT_TRUE(derive_from_rate(padded, stated).useful_mfu) << "the documents' own share";
  full.workload = Workload::kCommand;
  EXPECT_FALSE(of(full).useful_fraction || of(full).useful_tokens_per_s || of(full).useful_run_tokens_per_s)
      << "only the program knows";
}

TEST(Useful, TheShareOfDocumentsDoesNotDependOnTheBatch) {
  Trial t = eight_gpus();
  t.dp = t.gpus_per_node = 1, t.seq_len = 1024;
  for (const char* lengths : {"lognormal 600 0.5", "uniform 400 700"})
    for (const bool packing : {true, false}) {
      t.lengths = lengths, t.packing = packing;
      std::vector<Metrics> of_batches;
      for (const i64 rows : {1, 4, 256}) {
        t.grad_accum = t.global_batch_size = rows;
        of_batches.push_back(derive(t, steps_of(500, 1), nullptr));
        EXPECT_LE(*of_batches.back().useful_mfu, *of_batches.back().mfu);
      }
      for (const Metrics& m : of_batches)
        EXPECT_DOUBLE_EQ(*m.useful_fraction, *of_batches[0].useful_fraction) << lengths << packing;
    }
}

}  // namespace
}  // namespace sweep::metrics
