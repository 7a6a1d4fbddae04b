// ShmBackend: collectives and point-to-point between ranks of one machine over a ShmSegment. It owns the
// queue of operations under way; sums are taken in rank order, so every rank gets the same bits in every run;
// it allocates no tensor memory.
//
// There is no progress thread. Starting an operation copies in what the ring holds; every later start,
// isCompleted() and wait() moves all operations on as far as the peers allow. With one thread per rank on as
// many cores, a helper thread would take from backward exactly the cycles it hides; being moved on at each
// bucket hides the waiting for slower peers, which is what can be hidden. A Work keeps its tensors until it
// is waited for, so peaks of memory do not depend on timing. wait() moves the thread's other groups on too: a
// peer may wait for mail of theirs before it comes to what is waited for here.
//
// REQUIRES: all calls on one thread; contiguous CPU tensors; the same order of collectives on every rank;
// send and recv between a pair match in order (a tag that differs is an error).
#pragma once
#include <deque>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "bench_kernels/comm/group.h"
#include "bench_kernels/comm/shm_segment.h"

namespace sweep::comm {

struct ShmOperation;

class ShmBackend final : public c10d::Backend {
 public:
  explicit ShmBackend(const GroupOptions&);
  ~ShmBackend() override;

  const std::string getBackendName() const override { return "shm"; }
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }
  void abort() override { segment_.abort(); }

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  WorkPtr allreduce(std::vector<at::Tensor>&, const c10d::AllreduceOptions&) override;
  WorkPtr broadcast(std::vector<at::Tensor>&, const c10d::BroadcastOptions&) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions&) override;
  // With uneven splits the ranks first agree on the largest part, so the call waits for all of them.
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions&) override;
  WorkPtr send(std::vector<at::Tensor>&, int to, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>&, int from, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions&) override;

  // Moves everything on as far as the peers allow, without waiting.
  void progress();
  // Waits until the operation is done; throws c10::DistError when a peer is lost or the time is over.
  void finish(const ShmOperation&, std::chrono::milliseconds timeout);

 private:
  using OperationPtr = std::shared_ptr<ShmOperation>;
  WorkPtr start(OperationPtr, std::chrono::milliseconds timeout);
  bool arrive();
  bool reduce_shares();
  bool leave();
  bool move_mail(ShmOperation&);
  bool progress_others();
  bool all_reached(std::atomic<std::uint32_t> ShmSegment::Line::*counter, std::uint32_t goal) const;
  bool waits_for(const ShmOperation&, int peer) const;
  std::int64_t agree_on_largest(std::int64_t mine);

  ShmSegment segment_;
  std::chrono::milliseconds timeout_;
  std::deque<OperationPtr> collectives_, mail_;
  std::uint32_t arrived_ = 0, reduced_ = 0, left_ = 0, queued_ = 0;  // pieces, over all collectives
  std::vector<std::uint32_t> sent_, received_;                       // mail pieces, by peer
};

}  // namespace sweep::comm
