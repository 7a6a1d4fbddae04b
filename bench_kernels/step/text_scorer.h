// TextScorer: compares predicted sequences with their labels on a thread of its own, in the order in which they
// come. It owns the thread and what waits for it.
#pragma once
#include <ATen/core/Tensor.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "bench_kernels/comm/channel.h"
#include "bench_kernels/shape/text_overlap.h"

namespace sweep::step {

struct TextScores {
  std::int64_t ns = 0;           // nanoseconds that the thread computed for
  double bleu = 0, rouge_l = 0;  // bleu: all ranks' sequences together; rouge_l: this rank's
};

class TextScorer {
 public:
  // Ranks that have a scorer each; they must outlive it.
  TextScorer(comm::Channel& ranks, at::Device device)
      : ranks_(ranks), device_(device), thread_([this] { work(); }) {}
  ~TextScorer();
  TextScorer(const TextScorer&) = delete;
  TextScorer& operator=(const TextScorer&) = delete;

  // Both int64 [rows], on any device, which this waits for; ends: the row behind each sequence. Rows whose label is
  // negative have no token. Waits while a million tokens wait for the thread.
  void add(const at::Tensor& predicted, const at::Tensor& labels, const std::vector<std::int64_t>& ends);
  // Waits until all is compared, and calls beat() after sequences. A collective. Throws what the thread threw.
  TextScores finish(const std::function<void()>& beat);

 private:
  struct Sequence {
    std::vector<i64> predicted, labels;
  };
  void work();

  comm::Channel& ranks_;
  const at::Device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sequence> waiting_;
  bool ends_ = false, done_ = false;
  std::int64_t tokens_ = 0;  // tokens that wait
  std::int64_t compared_ = 0, ns_ = 0;
  std::atomic<bool> stops_{false};
  std::exception_ptr failed_;
  shape::TextOverlap overlap_;
  std::thread thread_;  // the last member: it begins when the others are there
};

}  // namespace sweep::step
