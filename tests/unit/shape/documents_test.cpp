// Lengths of documents, their file, and which of them lie in which row.
#include "bench_kernels/shape/documents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/error_matchers.h"

namespace sweep::shape {
namespace {

using ::testing::ElementsAre;

Trial documents(const char* lengths, bool packing, i64 seq_len = 64) {
  Trial t;
  t.lengths = lengths, t.packing = packing, t.seq_len = seq_len;
  return t;
}

double mean_of(const char* text, int draws = 20'000) {
  const auto lengths = *Lengths::parse(text);
  double sum = 0;
  for (int i = 0; i < draws; ++i) sum += static_cast<double>(lengths.draw(static_cast<std::uint64_t>(i)));
  return sum / draws;
}

TEST(Lengths, AreDrawnAsTheirWordsSay) {
  EXPECT_NEAR(mean_of("lognormal 300 0.8"), 300, 6);
  EXPECT_NEAR(mean_of("lognormal 300 0"), 300, 0);
  EXPECT_NEAR(mean_of("uniform 10 30"), 20, 0.2);
  EXPECT_EQ(mean_of("fixed 512"), 512);
  EXPECT_NEAR(mean_of("list 1 2 9"), 4, 0.1);
  const auto uniform = *Lengths::parse("uniform 3 5");
  std::vector<bool> seen(7);
  for (std::uint64_t i = 0; i < 200; ++i) seen[static_cast<std::size_t>(uniform.draw(i))] = true;
  EXPECT_EQ(seen, (std::vector<bool>{false, false, false, true, true, true, false}));
  EXPECT_EQ(Lengths::parse("  lognormal   300 0.8 ")->text(), "lognormal 300 0.8");
  EXPECT_EQ(Lengths::parse("lognormal 32.0 1")->text(), "lognormal 32 1");
  EXPECT_EQ(Lengths::parse("lognormal 3.2e1 1.0")->text(), "lognormal 32 1");
  EXPECT_EQ(Lengths::parse("lognormal 32 -0.0")->text(), "lognormal 32 0");
  EXPECT_EQ(Lengths::parse("uniform 08 009")->text(), "uniform 8 9");
}

TEST(Lengths, RefuseWhatTheyAreNot) {
  for (const char* wrong : {"",
                            "512",
                            "fixed",
                            "fixed 0",
                            "fixed -3",
                            "fixed 1.5",
                            "fixed 1 2",
                            "uniform 5",
                            "uniform 9 3",
                            "uniform 0 3",
                            "lognormal 300",
                            "lognormal 0 1",
                            "lognormal 300 -1",
                            "lognormal 300 nan",
                            "lognormal inf 1",
                            "lognormal 300 9",
                            "list",
                            "list 1,2",
                            "list 100000001",
                            "gamma 3 4",
                            "file x"}) {
    const auto lengths = Lengths::parse(wrong);
    ASSERT_FALSE(lengths) << wrong;
    EXPECT_THAT(lengths.error(), IsError(ErrorKind::kInvalidValue, "lengths"));
  }
  std::string many = "list";
  for (int i = 0; i < 101; ++i) many += " 7";
  EXPECT_FALSE(Lengths::parse(many));
}

TEST(LengthsOfFile, AreItsNumbersSortedOrTheirQuantiles) {
  EXPECT_EQ(lengths_of_file("30\n10\n20\n", "x").value(), "list 10 20 30");
  EXPECT_EQ(lengths_of_file("length\r\n7\r\n5", "x").value(), "list 5 7");
  std::string many;
  for (int i = 1000; i > 0; --i) many += fmt::format("{}\n", i);
  EXPECT_EQ(percentile(*read_lengths("30\n10\n20\n40\n", "x"), 50), 20);
  EXPECT_EQ(percentile(*read_lengths("30\n10\n20\n40\n", "x"), 50.1), 30);
  EXPECT_EQ(percentile({7}, 0.001), 7);
  const auto listed = must(lengths_of_file(many, "x"));
  EXPECT_TRUE(listed.starts_with("list 6 16 26 ")) << listed;
  EXPECT_TRUE(listed.ends_with(" 986 996")) << listed;
  EXPECT_NEAR(mean_of(listed.c_str()), 500, 5);
}

TEST(LengthsOfFile, SayWhereALineIsNoLength) {
  const auto line_of = [](const char* text) {
    const auto listed = lengths_of_file(text, "data/lengths.csv");
    EXPECT_FALSE(listed) << text;
    if (listed) return -1;
    EXPECT_EQ(listed.error().file, "data/lengths.csv");
    EXPECT_THAT(listed.error().message, ::testing::HasSubstr(fmt::format(":{}:", listed.error().line)));
    return listed.error().line;
  };
  EXPECT_EQ(line_of("5\nabc\n"), 2);
  EXPECT_EQ(line_of("5\n6\n0\n"), 3);
  EXPECT_EQ(line_of("-5\n"), 1);
  EXPECT_EQ(line_of("5\n\n6\n"), 2);
  EXPECT_EQ(line_of("5,6\n"), 1);
  EXPECT_EQ(line_of("5\nlength\n"), 2);
  EXPECT_EQ(line_of("99999999999999999999\n"), 1);
  EXPECT_EQ(line_of(""), 1);
  EXPECT_EQ(line_of("length\n"), 1);
}

TEST(DocumentRows, PaddedOnesHaveOneDocumentCutAtTheLengthOfASequence) {
  DocumentRows rows(documents("list 5 900", false));
  for (i64 number = 0; number < 50; ++number)
    EXPECT_THAT(rows.row(number), ::testing::AnyOf(ElementsAre(5), ElementsAre(64)));
}

TEST(DocumentRows, PackedOnesAreFirstFit) {
  const Trial t = documents("uniform 1 40", true);
  const auto lengths = *Lengths::parse(t.lengths);
  // First fit, spelt out: each document to the first row with room.
  std::vector<std::vector<i64>> expected(kPackedRows);
  const auto room = [&](const std::vector<i64>& row) {
    return 64 - std::accumulate(row.begin(), row.end(), i64{0});
  };
  for (std::uint64_t document = 0;; ++document) {
    const i64 tokens = lengths.draw(document);
    std::size_t row = 0;
    while (row < expected.size() && room(expected[row]) < tokens) ++row;
    if (row == expected.size()) break;
    expected[row].push_back(tokens);
  }
  DocumentRows rows(t);
  for (i64 number = kPackedRows - 1; number >= 0; --number)
    EXPECT_EQ(rows.row(number), expected[static_cast<std::size_t>(number)]) << number;
  EXPECT_NE(rows.row(kPackedRows), expected[0]) << "the next rows have other documents";
  EXPECT_EQ(rows.row(0), expected[0]) << "and the first ones are there again";
}

TEST(DocumentRows, ARowDependsOnItsNumberAlone) {
  Trial one = documents("lognormal 20 1", true), four = one;
  four.dp = 4, four.micro_batch_size = 2, four.global_batch_size = 64;
  DocumentRows a(one), b(four);
  for (const i64 number : {130, 3, 64, 63}) EXPECT_EQ(a.row(number), b.row(number));
}

TEST(DocumentCounts, SumWhatTheRowsHold) {
  for (const bool packing : {false, true}) {
    Trial t = documents("lognormal 20 1", packing);
    t.dp = 5, t.grad_accum = 7, t.micro_batch_size = 2;
    DocumentRows rows(t);
    double useful = 0, squares = 0;
    i64 most = 0;
    for (i64 micro = 0; micro < 35; ++micro) {
      i64 pieces = 0;
      for (const i64 number : {2 * micro, 2 * micro + 1}) {
        const auto& row = rows.row(number);
        const i64 sum = std::accumulate(row.begin(), row.end(), i64{0});
        for (const i64 tokens : row) squares += static_cast<double>(tokens * tokens);
        useful += static_cast<double>(sum), pieces += static_cast<i64>(row.size()) + (sum < 64 ? 1 : 0);
      }
      most = std::max(most, pieces);
    }
    const DocumentCounts counts = document_counts(t);
    EXPECT_EQ(counts.tokens, 70 * 64);
    EXPECT_EQ(counts.useful, useful);
    EXPECT_EQ(counts.squares, squares);
    EXPECT_EQ(counts.most, most);
    EXPECT_EQ(keys_per_token(t), packing ? squares / counts.tokens : 64);
  }
  EXPECT_EQ(document_counts(documents("", false)).useful_fraction(), 1);
}

// Half of a document of n tokens, and of a window w - w^2 / (2 n).
TEST(DocumentCounts, AQuerySeesTheKeysBeforeItInsideItsWindow) {
  Trial t = documents("", false);
  EXPECT_EQ(causal_keys_per_token(t), 32);
  t.spec.layers = 4, t.spec.sliding_window = 16;
  EXPECT_EQ(causal_keys_per_token(t), 14) << "16 - 16 x 16 / 128";
  t.spec.sliding_window_pattern = 2;
  EXPECT_EQ(causal_keys_per_token(t), 23);
  t.spec.sliding_window = 64;
  EXPECT_EQ(causal_keys_per_token(t), 32);
  t.lengths = "fixed 32", t.packing = true, t.spec.sliding_window = 16, t.spec.sliding_window_pattern = 0;
  EXPECT_EQ(causal_keys_per_token(t), 12) << "16 - 16 x 16 / 64, of each document";
  t.spec.sliding_window.reset();
  EXPECT_EQ(causal_keys_per_token(t), 16);
}

TEST(DocumentCounts, ThoseOfARunDoNotDependOnTheBatch) {
  for (const bool packing : {true, false}) {
    Trial one = documents("uniform 400 700", packing, 1024), many = one;
    many.dp = 4, many.grad_accum = 256, many.micro_batch_size = 4;
    const double share = run_document_counts(one).useful_fraction();
    EXPECT_EQ(share, run_document_counts(many).useful_fraction());
    EXPECT_NEAR(share, document_counts(many).useful_fraction(), 0.01);
    EXPECT_GT(std::abs(document_counts(one).useful_fraction() - share), 0.05) << "one row is not all";
  }
}

TEST(DocumentCounts, PackingFillsRowsThatPaddingLeavesEmpty) {
  Trial t = documents("lognormal 300 0.8", true, 2048);
  t.dp = 8, t.grad_accum = 8;
  EXPECT_GT(document_counts(t).useful_fraction(), 0.95);
  t.packing = false;
  EXPECT_NEAR(document_counts(t).useful_fraction(), 300.0 / 2048, 0.05);
  t.dp = 1'000'000;  // the first rows stand for all
  EXPECT_NEAR(document_counts(t).useful_fraction(), 300.0 / 2048, 0.01);
}

}  // namespace
}  // namespace sweep::shape
