// Channel: one group of ranks as the step uses it. It owns the backend, counts what this rank sends through
// it (Traffic) and tells the progress page what it enters and leaves, so that a hang can be explained. A
// channel of one rank sends nothing and costs nothing. It knows nothing of models.
//
// REQUIRES: contiguous tensors; the same order of calls on every rank; every Pending is waited for.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/comm/group.h"
#include "schema/progress.h"

namespace sweep::comm {

using Kind = Collective;
inline constexpr std::size_t kKinds = kCollectives;
using sweep::name_of;

// Counts what one rank has put on the wire, by kind of operation. Bytes follow the ring algorithms' lower
// bound (Thakur et al. 2005; nccl-tests, PERFORMANCE.md): all-reduce 2 (n-1)/n of the payload,
// reduce-scatter, all-gather and even all-to-all (n-1)/n of the whole tensor, a send its tensor, a receive
// nothing.
struct Traffic {
  std::array<std::int64_t, kKinds> calls{}, bytes{};
  std::int64_t total_bytes() const;
  // Collectives and sends; a receive is its sender's call, a barrier carries nothing.
  std::int64_t total_calls() const;
  std::int64_t calls_of(Kind k) const { return calls[static_cast<std::size_t>(k)]; }
  std::int64_t bytes_of(Kind k) const { return bytes[static_cast<std::size_t>(k)]; }
  Traffic& operator+=(const Traffic&);
  Traffic since(const Traffic& before) const;
};

// Called before (true) and after each wait.
using WatchWaits = std::function<void(bool begins)>;

// An operation under way; its tensors are kept until wait(). Default: nothing under way. Movable; must be
// waited for before it goes (a lost peer throws c10::DistError from wait()).
class Pending {
 public:
  Pending() = default;
  // watch: null, or of the channel, which outlives this.
  Pending(c10::intrusive_ptr<c10d::Work> work, ProgressPage* page, const CollectiveName& name,
          const WatchWaits* watch = nullptr)
      : work_(std::move(work)), page_(page), name_(name), watch_(watch) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&&) noexcept = default;
  bool under_way() const { return static_cast<bool>(work_); }
  void wait();

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  ProgressPage* page_ = nullptr;
  CollectiveName name_;
  const WatchWaits* watch_ = nullptr;
};

// A message on its way out and one on its way in.
struct Exchange {
  Pending first, second;
  void wait() { first.wait(), second.wait(); }
};

class Channel {
 public:
  // A channel of this rank alone.
  explicit Channel(std::string name) : name_(std::move(name)) {}
  Channel(std::string name, BackendPtr backend, ProgressPage* page)
      : name_(std::move(name)), backend_(std::move(backend)), page_(page) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& name() const { return name_; }
  int rank() const { return backend_ ? backend_->getRank() : 0; }
  int size() const { return backend_ ? backend_->getSize() : 1; }
  bool alone() const { return size() == 1; }

  enum class Op { kSum, kAverage, kMax };
  // The sum takes the place of the tensor.
  Pending all_reduce(const at::Tensor& tensor, Op op = Op::kSum);
  // out[n] is this rank's part of the sum of in[n * size].
  Pending reduce_scatter(const at::Tensor& in, const at::Tensor& out, Op op = Op::kSum);
  // out[n * size] holds every rank's in[n], in rank order; in may be this rank's part of out.
  Pending all_gather(const at::Tensor& in, const at::Tensor& out);
  // Rows (first dimension) of in go to the ranks by in_splits, rows of out come by out_splits; both empty:
  // evenly.
  Pending all_to_all(const at::Tensor& in, const at::Tensor& out, std::vector<std::int64_t> in_splits = {},
                     std::vector<std::int64_t> out_splits = {});
  Pending send(const at::Tensor& tensor, int to, int tag = 0);
  Pending recv(const at::Tensor& tensor, int from, int tag = 0);
  // Every rank sends `mine` to the one `stride` after it and receives `theirs` from the one `stride` before
  // it, as members of a ring; all call it together. Where a backend can, both are one operation; else
  // neighbours in a ring take turns in who sends first: a backend that runs a rank's messages one after
  // another would wait in a circle.
  Exchange shift(const at::Tensor& mine, const at::Tensor& theirs, int stride = 1, int tag = 0);
  void barrier();
  // Ends the operations of all ranks in this group with an error.
  void abort();

  // It is told of the waits for operations that begin from now on; empty: nobody watches.
  void watch_waits(WatchWaits watch) { watch_ = std::move(watch); }

  const Traffic& traffic() const { return traffic_; }
  void reset_traffic() { traffic_ = {}; }
  // Adds what a captured graph sends when it is launched.
  void count(const Traffic& sent) { traffic_ += sent; }
  // The backend for code that must speak to it directly; null when alone.
  const BackendPtr& backend() const { return backend_; }

 private:
  Pending begin(Kind kind, std::int64_t bytes, c10::intrusive_ptr<c10d::Work> work);
  void enter(Kind kind);

  std::string name_;
  BackendPtr backend_;
  ProgressPage* page_ = nullptr;
  CollectiveName last_;        // entered in this group
  std::uint64_t entered_ = 0;  // how many
  Traffic traffic_;
  WatchWaits watch_;
};

}  // namespace sweep::comm
