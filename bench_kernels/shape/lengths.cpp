#include "bench_kernels/shape/lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/fail.h"

namespace sweep::shape {
namespace {

template <class T>
std::optional<T> number_of(std::string_view word, T least, T most) {
  T value{};
  const char* const end = word.data() + word.size();
  const auto got = std::from_chars(word.data(), end, value);
  const bool whole = got.ec == std::errc{} && got.ptr == end;
  return whole && value >= least && value <= most ? std::optional(value) : std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Above 0 and below 1.
double share_of(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

i64 tokens_of(double length) {
  return static_cast<i64>(std::clamp(std::round(length), 1.0, static_cast<double>(kMostDocumentTokens)));
}

}  // namespace

Expected<Lengths> Lengths::parse(std::string_view text) {
  const auto words = words_of(text);
  const auto refuse = [&] {
    return fail(ErrorKind::kInvalidValue, "lengths",
                "lengths '{}' is none of: lognormal MEAN SIGMA (MEAN from 1 tokens, SIGMA 0 to 5), uniform "
                "LEAST MOST, fixed TOKENS, list TOKENS ... (at most {}), file PATH",
                text.substr(0, 60), kListedLengths);
  };
  if (words.size() < 2 || words.size() > kListedLengths + 1) return refuse();
  Lengths out;
  if (words[0] == "lognormal") {
    const auto mean = number_of(words[1], 1.0, static_cast<double>(kMostDocumentTokens));
    const auto sigma = words.size() == 3 ? number_of(words[2], 0.0, 5.0) : std::nullopt;
    if (!mean || !sigma) return refuse();
    out.kind_ = Kind::kLognormal, out.mean_ = *mean, out.sigma_ = *sigma;
    out.text_ = fmt::format("lognormal {} {}", out.mean_, std::abs(out.sigma_));
    return out;
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto tokens = number_of(words[i], i64{1}, kMostDocumentTokens);
    if (!tokens) return refuse();
    out.numbers_.push_back(*tokens);
  }
  out.text_ = fmt::format("{} {}", words[0], fmt::join(out.numbers_, " "));
  if (words[0] == "list" || (words[0] == "fixed" && words.size() == 2)) return out;
  const bool between = words.size() == 3 && out.numbers_[0] <= out.numbers_[1];
  if (words[0] != "uniform" || !between) return refuse();
  out.kind_ = Kind::kUniform;
  return out;
}

i64 Lengths::draw(std::uint64_t number) const {
  const std::uint64_t bits = mixed(number);
  const double share = share_of(bits);
  if (kind_ == Kind::kUniform) {
    const double span = static_cast<double>(numbers_[1] - numbers_[0] + 1);
    return numbers_[0] + static_cast<i64>(share * span);
  }
  if (kind_ == Kind::kList)
    return numbers_[static_cast<std::size_t>(share * static_cast<double>(numbers_.size()))];
  // Box and Muller 1958. The mean of exp(m + s z) is exp(m + s^2 / 2).
  const double z = std::sqrt(-2 * std::log(share)) * std::cos(2 * M_PI * share_of(mixed(bits)));
  return tokens_of(mean_ * std::exp(sigma_ * z - sigma_ * sigma_ / 2));
}

Expected<std::vector<i64>> read_lengths(std::string_view text, const std::string& name) {
  std::vector<i64> all;
  int line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view word = text.substr(at, end - at);
    at = end + 1, ++line;
    if (word.ends_with('\r')) word.remove_suffix(1);
    if (word.empty() && at >= text.size()) break;
    if (line == 1 && word == "length") continue;
    const auto tokens = number_of(word, i64{1}, kMostDocumentTokens);
    if (!tokens)
      return tl::unexpected(Error{
          fmt::format("{}:{}: '{}' is not a length; each line is one whole number of tokens from 1 to {}",
                      name, line, word.substr(0, 60), kMostDocumentTokens),
          ErrorKind::kInvalidValue, std::string(word.substr(0, 60)), name, line, 1});
    all.push_back(*tokens);
  }
  if (all.empty())
    return tl::unexpected(Error{
        fmt::format("{}:{}: no length is in it; write one whole number a line", name, std::max(line, 1)),
        ErrorKind::kMissing, "lengths", name, std::max(line, 1), 1});
  std::sort(all.begin(), all.end());
  return all;
}

Expected<std::string> lengths_of_file(std::string_view text, const std::string& name) {
  SWEEP_GET(const auto all, read_lengths(text, name));
  const std::size_t kept = std::min(all.size(), kListedLengths);
  std::string out = "list";
  for (std::size_t i = 0; i < kept; ++i)
    out += fmt::format(" {}", all[(2 * i + 1) * all.size() / (2 * kept)]);
  return out;
}

i64 percentile(const std::vector<i64>& ascending, double percent) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(ascending.size())));
  return ascending[std::clamp(rank, std::size_t{1}, ascending.size()) - 1];
}

}  // namespace sweep::shape
