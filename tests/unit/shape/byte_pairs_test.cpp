// Text of tokens, read back; and joins in the table's order.
#include "bench_kernels/shape/byte_pairs.h"

#include <gtest/gtest.h>

#include <set>

namespace sweep::shape {
namespace {

std::string text_of(const BytePairs& table, const std::vector<i64>& tokens) {
  std::string text;
  for (const i64 token : tokens) table.write(token, text);
  return text;
}

std::vector<i64> tokens_of(const BytePairs& table, std::string_view text) {
  std::vector<i64> out;
  table.tokenise(text, out);
  return out;
}

TEST(BytePairs, EveryTokenIsReadBack) {
  for (const i64 vocabulary : {1, 2, 16, 17, 97, 128'256}) {
    const BytePairs table(vocabulary);
    std::vector<i64> all;
    std::set<std::string> words;
    for (i64 token = 0; token < vocabulary; ++token) {
      all.push_back(token);
      words.insert(text_of(table, {token}));
    }
    EXPECT_EQ(tokens_of(table, text_of(table, all)), all) << vocabulary;
    EXPECT_EQ(static_cast<i64>(words.size()), vocabulary);
    EXPECT_EQ(text_of(table, all).size(), 5 * all.size());
  }
}

TEST(BytePairs, WhatIsNoTokenIsLeftInPieces) {
  const BytePairs table(16);
  const std::string word = text_of(table, {11});
  EXPECT_EQ(tokens_of(table, word.substr(0, 4)), (std::vector<i64>{11})) << "no space behind the last word";
  EXPECT_EQ(tokens_of(table, word.substr(0, 2)), (std::vector<i64>{-1})) << "half a word";
  EXPECT_EQ(tokens_of(table, word.substr(1, 2)), (std::vector<i64>{-1, -1}))
      << "letters that are never joined";
  EXPECT_EQ(tokens_of(table, word.substr(0, 4) + word), (std::vector<i64>{11, 11}))
      << "two words without a space";
  EXPECT_TRUE(tokens_of(table, "").empty());
}

}  // namespace
}  // namespace sweep::shape
