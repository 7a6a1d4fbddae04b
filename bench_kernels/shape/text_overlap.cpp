#include "bench_kernels/shape/text_overlap.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace sweep::shape {
namespace {

using Run = std::array<i64, 4>;  // shorter ones end with zeros

std::vector<Run> sorted_runs(std::span<const i64> tokens, std::size_t length) {
  std::vector<Run> runs;
  for (std::size_t begin = 0; begin + length <= tokens.size(); ++begin) {
    Run& run = runs.emplace_back();
    std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(begin), length, run.begin());
  }
  std::ranges::sort(runs);
  return runs;
}

}  // namespace

i64 longest_common_subsequence(std::span<const i64> a, std::span<const i64> b,
                               const std::atomic<bool>* stop) {
  std::vector<i64> row(b.size() + 1, 0);  // lengths for the part of a so far with each beginning of b
  for (const i64 token : a) {
    if (stop != nullptr && *stop) break;
    i64 corner = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const i64 above = row[j + 1];
      row[j + 1] = token == b[j] ? corner + 1 : std::max(above, row[j]);
      corner = above;
    }
  }
  return row.back();
}

void TextOverlap::add(std::span<const i64> predicted, std::span<const i64> reference,
                      const std::atomic<bool>* stop) {
  counts_.predicted += static_cast<i64>(predicted.size());
  counts_.reference += static_cast<i64>(reference.size());
  for (std::size_t n = 1; n <= kLongestRun; ++n) {
    const auto mine = sorted_runs(predicted, n), theirs = sorted_runs(reference, n);
    // A run that both have several times is there as often as in the one that has it less often.
    std::vector<Run> both;
    std::ranges::set_intersection(mine, theirs, std::back_inserter(both));
    counts_.runs[n - 1] += static_cast<i64>(mine.size());
    counts_.right[n - 1] += static_cast<i64>(both.size());
  }
  const auto tokens = static_cast<double>(predicted.size() + reference.size());
  const auto weight = static_cast<double>(reference.size());
  if (tokens > 0)
    rouge_l_ +=
        weight * 2 * static_cast<double>(longest_common_subsequence(predicted, reference, stop)) / tokens;
}

double TextOverlap::bleu(const Counts& c) {
  double logarithms = 0, lengths = 0;
  for (std::size_t n = 0; n < kLongestRun && c.runs[n] > 0; ++n) {
    logarithms += std::log(static_cast<double>(c.right[n]) / static_cast<double>(c.runs[n]));
    ++lengths;
  }
  if (lengths == 0) return 0;
  const double brevity =
      std::min(0.0, 1 - static_cast<double>(c.reference) / static_cast<double>(c.predicted));
  return std::exp(brevity + logarithms / lengths);
}

double TextOverlap::rouge_l() const {
  return counts_.reference == 0 ? 0 : rouge_l_ / static_cast<double>(counts_.reference);
}

}  // namespace sweep::shape
