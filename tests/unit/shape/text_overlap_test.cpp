// BLEU and ROUGE-L of sequences whose overlap is counted by hand.
#include "bench_kernels/shape/text_overlap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sweep::shape {
namespace {

using Tokens = std::vector<i64>;

TextOverlap overlap_of(const Tokens& predicted, const Tokens& reference) {
  TextOverlap out;
  out.add(predicted, reference);
  return out;
}

TEST(TextOverlap, TheLongestCommonSubsequenceMayHaveGaps) {
  EXPECT_EQ(longest_common_subsequence(Tokens{1, 2, 3, 2, 4, 1, 2}, Tokens{2, 4, 3, 1, 2, 1}), 4);
  EXPECT_EQ(longest_common_subsequence(Tokens{1, 2, 3}, Tokens{3, 2, 1}), 1);
  EXPECT_EQ(longest_common_subsequence(Tokens{1, 2}, Tokens{3, 4}), 0);
  EXPECT_EQ(longest_common_subsequence(Tokens{}, Tokens{3}), 0);
}

TEST(TextOverlap, ASubsequenceThatIsNotWantedAnyMoreEndsEarly) {
  const std::vector<i64> tokens{1, 2, 3};
  std::atomic<bool> stop{false};
  EXPECT_EQ(longest_common_subsequence(tokens, tokens, &stop), 3);
  stop = true;
  EXPECT_EQ(longest_common_subsequence(tokens, tokens, &stop), 0);
}

TEST(TextOverlap, OfTheSameTokensBothAreOne) {
  const TextOverlap same = overlap_of({5, 6, 7, 8, 9}, {5, 6, 7, 8, 9});
  EXPECT_DOUBLE_EQ(same.bleu(), 1);
  EXPECT_DOUBLE_EQ(same.rouge_l(), 1);
  EXPECT_DOUBLE_EQ(overlap_of({5, 6}, {5, 6}).bleu(), 1) << "without runs of three tokens";
}

// Papineni et al. 2002, example 2: seven times "the" against "the cat is on the mat", two of seven are right.
TEST(TextOverlap, ARunCountsAtMostAsOftenAsTheReferenceHasIt) {
  EXPECT_DOUBLE_EQ(overlap_of({1, 1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 1, 5}).bleu(), 0) << "no pair is right";
  const TextOverlap pairs = overlap_of({1, 1, 1}, {1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(pairs.bleu(), std::exp(1 - 4.0 / 3.0)) << "all right, and too short";
}

TEST(TextOverlap, SequencesAddUpInBleuAndAreAveragedInRougeLByTheirTokens) {
  TextOverlap sum;
  sum.add(Tokens{1, 2, 3, 4, 5}, Tokens{1, 2, 3, 4, 6});  // runs right: 4 of 5, 3 of 4, 2 of 3, 1 of 2
  sum.add(Tokens{7, 7, 7, 7, 7}, Tokens{8, 8, 8, 8, 8});
  EXPECT_NEAR(sum.bleu(), std::pow(4.0 / 10 * 3 / 8 * 2 / 6 * 1 / 4, 0.25), 1e-12);
  EXPECT_DOUBLE_EQ(sum.rouge_l(), 0.4);
  EXPECT_DOUBLE_EQ(TextOverlap().bleu(), 0);
  EXPECT_DOUBLE_EQ(TextOverlap().rouge_l(), 0);
}

// Ranks hold some of the sequences each; their means are weighted by tokens (metrics/around.cpp).
TEST(TextOverlap, RougeLOfUnequalSequencesIsThatOfAnyLayout) {
  const Tokens long_one{1, 2, 3, 4, 5, 6, 7, 8, 9}, short_one{5};
  TextOverlap all;
  all.add(long_one, long_one), all.add(short_one, Tokens{6});
  EXPECT_DOUBLE_EQ(all.rouge_l(), 0.9) << "9 of 10 tokens";
  TextOverlap one, other;
  one.add(long_one, long_one), other.add(short_one, Tokens{6});
  EXPECT_DOUBLE_EQ((9 * one.rouge_l() + 1 * other.rouge_l()) / 10, all.rouge_l());
}

}  // namespace
}  // namespace sweep::shape
