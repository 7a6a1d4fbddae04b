// TextOverlap: how far predicted tokens agree with a reference, as sums over sequences. By runs of 1 to 4 tokens that
// both have (BLEU: Papineni, Roukos, Ward, Zhu 2002, doi 10.3115/1073083.1073135), and by the longest common
// subsequence (ROUGE-L, its F1: Lin 2004, aclanthology W04-1013), whose time is the product of both lengths.
#pragma once
#include <array>
#include <atomic>
#include <span>

#include "schema/trial.h"

namespace sweep::shape {

class TextOverlap {
 public:
  // stop (may be null): once true, what is under way ends early and counts for nothing.
  void add(std::span<const i64> predicted, std::span<const i64> reference,
           const std::atomic<bool>* stop = nullptr);
  // BLEU, from 0 to 1: the geometric mean over the lengths of runs that there are, of the share of predicted runs that
  // the reference has as often, times the brevity penalty; 0 if no run of one length is right.
  double bleu() const { return bleu(counts_); }
  double rouge_l() const;  // mean over sequences, each weighted by the tokens of its reference

  // Counts are what BLEU is computed from. Those of several sets of sequences add up to those of all.
  static constexpr std::size_t kLongestRun = 4;
  struct Counts {
    std::array<i64, kLongestRun> right{}, runs{};  // by length in tokens: 1, 2, ...
    i64 predicted = 0, reference = 0;
  };
  const Counts& counts() const { return counts_; }
  static double bleu(const Counts&);

 private:
  Counts counts_;
  double rouge_l_ = 0;  // sum, weighted
};

// Length of the longest common subsequence; any number once stop is true.
i64 longest_common_subsequence(std::span<const i64> a, std::span<const i64> b,
                               const std::atomic<bool>* stop = nullptr);

}  // namespace sweep::shape
