#include "bench_kernels/step/text_scorer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace sweep::step {
namespace {

constexpr std::int64_t kMostWaiting = std::int64_t{1} << 20;  // tokens, 16 bytes each

std::vector<i64> on_host(const at::Tensor& rows) {
  std::vector<i64> out(static_cast<std::size_t>(rows.numel()));
  at::from_blob(out.data(), rows.sizes(), at::kLong).copy_(rows);
  return out;
}

// BLEU of the sequences of all of these ranks together. A collective.
double bleu_of_all(const shape::TextOverlap::Counts& mine, comm::Channel& ranks, at::Device device) {
  constexpr auto kRuns = static_cast<std::ptrdiff_t>(shape::TextOverlap::kLongestRun);
  std::array<i64, 2 * kRuns + 2> all{};
  std::ranges::copy(mine.right, all.begin()), std::ranges::copy(mine.runs, all.begin() + kRuns);
  all[2 * kRuns] = mine.predicted, all[2 * kRuns + 1] = mine.reference;
  const at::Tensor host = at::from_blob(all.data(), {std::ssize(all)}, at::kLong);
  const at::Tensor sum = host.to(device, at::kDouble);
  ranks.all_reduce(sum).wait();
  at::Tensor(host).copy_(sum);
  shape::TextOverlap::Counts counts{{}, {}, all[2 * kRuns], all[2 * kRuns + 1]};
  std::copy_n(all.begin(), kRuns, counts.right.begin());
  std::copy_n(all.begin() + kRuns, kRuns, counts.runs.begin());
  return shape::TextOverlap::bleu(counts);
}

}  // namespace

TextScorer::~TextScorer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = stops_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TextScorer::add(const at::Tensor& predicted, const at::Tensor& labels,
                     const std::vector<std::int64_t>& ends) {
  const std::vector<i64> tokens = on_host(predicted), references = on_host(labels);
  std::size_t row = 0;
  for (const std::int64_t end : ends) {
    Sequence next;
    for (; row < static_cast<std::size_t>(end); ++row) {
      if (references[row] < 0) continue;
      next.predicted.push_back(tokens[row]), next.labels.push_back(references[row]);
    }
    if (next.labels.empty()) continue;
    const auto size = static_cast<std::int64_t>(next.labels.size());
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ || tokens_ == 0 || tokens_ + size <= kMostWaiting; });
    waiting_.push_back(std::move(next)), tokens_ += size;
    changed_.notify_all();
  }
}

void TextScorer::work() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  try {
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) break;
      const Sequence next = std::move(waiting_.front());
      waiting_.pop_front();
      tokens_ -= static_cast<std::int64_t>(next.labels.size());
      changed_.notify_all();
      lock.unlock();
      const auto began = Clock::now();
      overlap_.add(next.predicted, next.labels, &stops_);
      const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began);
      lock.lock();
      ns_ += took.count(), ++compared_;
      changed_.notify_all();
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    failed_ = std::current_exception();
  }
  done_ = true;
  changed_.notify_all();
}

TextScores TextScorer::finish(const std::function<void()>& beat) {
  std::unique_lock lock(mutex_);
  ends_ = true;
  changed_.notify_all();
  while (!done_) {
    const std::int64_t seen = compared_;
    changed_.wait(lock, [&] { return done_ || compared_ > seen; });
    lock.unlock();
    beat();
    lock.lock();
  }
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  return {ns_, bleu_of_all(overlap_.counts(), ranks_, device_), overlap_.rouge_l()};
}

}  // namespace sweep::step
