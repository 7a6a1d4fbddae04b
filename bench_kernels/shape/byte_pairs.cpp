#include "bench_kernels/shape/byte_pairs.h"

#include <algorithm>

namespace sweep::shape {
namespace {

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

}  // namespace

// The halves of words first: all pairs of the first two places, then of the last two; then the words.
BytePairs::BytePairs(i64 tokens) {
  while (letters_ * letters_ * letters_ * letters_ < tokens) ++letters_;
  for (const i64 place : {0, 2})
    for (i64 a = 0; a < letters_; ++a)
      for (i64 b = 0; b < letters_; ++b) join(letter(place, a), letter(place + 1, b));
  first_token_ = next_;
  const auto halves = static_cast<std::uint32_t>(letters_ * letters_);
  for (std::uint32_t token = 0; token < static_cast<std::uint32_t>(tokens); ++token)
    join(kBytes + token / halves, kBytes + halves + token % halves);
}

std::uint32_t BytePairs::letter(i64 place, i64 number) const {
  const auto byte = static_cast<std::uint32_t>(place * letters_ + number);
  return byte < ' ' ? byte : byte + 1;
}

void BytePairs::join(std::uint32_t left, std::uint32_t right) {
  joins_.emplace(pair_of(left, right), next_++);
}

void BytePairs::write(i64 token, std::string& text) const {
  i64 divisor = letters_ * letters_ * letters_;
  for (i64 place = 0; place < 4; ++place, divisor /= letters_)
    text += static_cast<char>(letter(place, token / divisor % letters_));
  text += ' ';
}

// The pair whose join comes first in the table.
bool BytePairs::join_once(Word& word) const {
  std::size_t best = 0;
  std::uint32_t symbol = 0;
  for (std::size_t i = 0; i + 1 < word.size(); ++i) {
    const auto found = joins_.find(pair_of(word[i], word[i + 1]));
    if (found != joins_.end() && (symbol == 0 || found->second < symbol)) best = i, symbol = found->second;
  }
  if (symbol == 0) return false;
  word[best] = symbol;
  word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  return true;
}

void BytePairs::tokenise(std::string_view text, std::vector<i64>& out) const {
  Word word;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    word.clear();
    for (const char byte : piece) word.push_back(static_cast<unsigned char>(byte));
    while (join_once(word)) {
    }
    for (const std::uint32_t symbol : word)
      out.push_back(symbol < first_token_ ? -1 : static_cast<i64>(symbol - first_token_));
  }
}

}  // namespace sweep::shape
