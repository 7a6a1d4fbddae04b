// Lengths: how many tokens a document has, as the axis `lengths` says: a distribution, or a list that stands
// for a file. A draw depends on its number alone, so that every rank and the plan see the same documents.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::shape {

inline constexpr i64 kMostDocumentTokens = 100'000'000;
// Numbers of a list; a longer file becomes as many quantiles.
inline constexpr std::size_t kListedLengths = 100;

class Lengths {
 public:
  // `lognormal MEAN SIGMA` (mean in tokens, deviation of the logarithm), `uniform LEAST MOST`, `fixed TOKENS`,
  // `list TOKENS ...`.
  static Expected<Lengths> parse(std::string_view text);
  // The text that parse() takes, with one space between words.
  const std::string& text() const { return text_; }
  // The tokens of the document of this number: at least 1.
  i64 draw(std::uint64_t number) const;

 private:
  enum class Kind { kLognormal, kUniform, kList };
  Kind kind_ = Kind::kList;
  std::string text_;
  double mean_ = 0, sigma_ = 0;
  std::vector<i64> numbers_;  // least and most, or the list
};

// The numbers of a file of lengths, ascending: one whole number a line (the first line may be the word `length`).
// `name` is the file's in errors. Never empty.
Expected<std::vector<i64>> read_lengths(std::string_view text, const std::string& name);
// The same as `list`: of more than kListedLengths those at the middles of as many equal shares.
Expected<std::string> lengths_of_file(std::string_view text, const std::string& name);
// The least length that at least `percent` of them do not exceed (nearest rank). REQUIRES: ascending, not empty;
// percent above 0, at most 100.
i64 percentile(const std::vector<i64>& ascending, double percent);

}  // namespace sweep::shape
