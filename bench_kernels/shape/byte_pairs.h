// BytePairs: a tokeniser of text by joins of pairs of bytes (byte-pair encoding: Sennrich, Haddow, Birch 2016, ACL,
// aclanthology P16-1162), and its table, which follows from the number of tokens alone. Each token is a word of four
// letters, about what a token of English has; the letters of each of the four places are other bytes, so that a
// word is joined in one way.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schema/trial.h"

namespace sweep::shape {

class BytePairs {
 public:
  static constexpr i64 kMostLetters =
      63;  // letters of a place; with the space between words, all places have 253 bytes
  static constexpr i64 kMostTokens = kMostLetters * kMostLetters * kMostLetters * kMostLetters;

  // REQUIRES: 1 to kMostTokens tokens.
  explicit BytePairs(i64 tokens);
  // Appends the token's word and a space.
  void write(i64 token, std::string& text) const;
  // Appends the tokens of a text: of each word, whose joins are made first to last in the table's order, what is left.
  // -1 stands for what is no token.
  void tokenise(std::string_view text, std::vector<i64>& out) const;

 private:
  static constexpr std::uint32_t kBytes = 256;  // symbols below are bytes; each join makes the next one
  using Word = std::vector<std::uint32_t>;
  std::uint32_t letter(i64 place, i64 number) const;
  void join(std::uint32_t left, std::uint32_t right);
  bool join_once(Word&) const;

  i64 letters_ = 1;  // letters of each place
  std::uint32_t next_ = kBytes;
  std::uint32_t first_token_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t>
      joins_;  // left and right to the symbol; earlier ones are smaller
};

}  // namespace sweep::shape
