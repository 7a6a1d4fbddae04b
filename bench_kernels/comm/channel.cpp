#include "bench_kernels/comm/channel.h"

#include <numeric>
#include <optional>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::comm {
namespace {

c10d::ReduceOp reduce_op(Channel::Op op) {
  switch (op) {
    case Channel::Op::kSum:
      return c10d::ReduceOp::SUM;
    case Channel::Op::kAverage:
      return c10d::ReduceOp::AVG;
    case Channel::Op::kMax:
      return c10d::ReduceOp::MAX;
  }
  return c10d::ReduceOp::SUM;
}

// Steps of `stride` from the first member of the ring that this rank is in.
int place_in_ring(int rank, int size, int stride) {
  int place = 0;
  for (int at = rank % std::gcd(size, stride); at != rank; at = (at + stride) % size) ++place;
  return place;
}

std::int64_t payload(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

// Gloo copies whole tensors where NCCL and shm have no temporaries, and frees the copies on its own threads,
// whenever those come to it: counted, a peak would depend on the moment.
class HiddenCopies {
 public:
  explicit HiddenCopies(const c10d::Backend& backend) {
    if (backend.getBackendName() == "gloo") scope_.emplace();
  }

 private:
  std::optional<memory::ScratchScope> scope_;
};

}  // namespace

std::int64_t Traffic::total_bytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::int64_t Traffic::total_calls() const {
  return std::accumulate(calls.begin(), calls.end(), std::int64_t{0}) - calls_of(Kind::kRecv) -
         calls_of(Kind::kBarrier);
}

Traffic& Traffic::operator+=(const Traffic& other) {
  for (std::size_t k = 0; k < kKinds; ++k) calls[k] += other.calls[k], bytes[k] += other.bytes[k];
  return *this;
}

Traffic Traffic::since(const Traffic& before) const {
  Traffic out = *this;
  for (std::size_t k = 0; k < kKinds; ++k) out.calls[k] -= before.calls[k], out.bytes[k] -= before.bytes[k];
  return out;
}

// A wait that fails stays on the page: it is what the rank died of.
void Pending::wait() {
  if (!work_) return;
  const auto work = std::move(work_);
  if (page_ != nullptr) page_->awaited.put(name_);
  if (watch_ != nullptr) (*watch_)(true);
  comm::wait(*work);
  if (watch_ != nullptr) (*watch_)(false);
  if (page_ == nullptr) return;
  page_->awaited.put({});
  page_->collective_done.fetch_add(1, std::memory_order_relaxed);
  page_->beats.fetch_add(1, std::memory_order_relaxed);
}

void Channel::enter(Kind kind) {
  ++traffic_.calls[static_cast<std::size_t>(kind)];
  if (page_ == nullptr) return;
  last_ = CollectiveName::of(kind, ++entered_, name_);
  page_->entered.put(last_);
  page_->awaited.put(last_);  // a backend may wait for peers before it has begun
  page_->collective.fetch_add(1, std::memory_order_relaxed);
  page_->beats.fetch_add(1, std::memory_order_relaxed);
}

Pending Channel::begin(Kind kind, std::int64_t bytes, c10::intrusive_ptr<c10d::Work> work) {
  traffic_.bytes[static_cast<std::size_t>(kind)] += bytes;
  if (page_ != nullptr) page_->awaited.put({});
  return {std::move(work), page_, last_, watch_ ? &watch_ : nullptr};
}

Pending Channel::all_reduce(const at::Tensor& tensor, Op op) {
  if (alone()) return {};
  enter(Kind::kAllReduce);
  std::vector<at::Tensor> tensors{tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = reduce_op(op);
  const std::int64_t bytes = 2 * payload(tensor) * (size() - 1) / size();
  const HiddenCopies copies(*backend_);
  return begin(Kind::kAllReduce, bytes, backend_->allreduce(tensors, options));
}

Pending Channel::reduce_scatter(const at::Tensor& in, const at::Tensor& out, Op op) {
  if (alone()) {
    if (!in.is_alias_of(out)) at::Tensor(out).copy_(in.view_as(out));
    return {};
  }
  enter(Kind::kReduceScatter);
  at::Tensor from = in, to = out;
  c10d::ReduceScatterOptions options;
  options.reduceOp = reduce_op(op);
  const HiddenCopies copies(*backend_);
  return begin(Kind::kReduceScatter, payload(out) * (size() - 1),
               backend_->_reduce_scatter_base(to, from, options));
}

Pending Channel::all_gather(const at::Tensor& in, const at::Tensor& out) {
  if (alone()) {
    if (!in.is_alias_of(out)) at::Tensor(out).copy_(in.view_as(out));
    return {};
  }
  enter(Kind::kAllGather);
  at::Tensor from = in, to = out;
  const HiddenCopies copies(*backend_);
  return begin(Kind::kAllGather, payload(in) * (size() - 1), backend_->_allgather_base(to, from, {}));
}

Pending Channel::all_to_all(const at::Tensor& in, const at::Tensor& out, std::vector<std::int64_t> in_splits,
                            std::vector<std::int64_t> out_splits) {
  if (alone()) {
    if (!in.is_alias_of(out)) at::Tensor(out).copy_(in.view_as(out));
    return {};
  }
  enter(Kind::kAllToAll);
  const std::int64_t rows = in.dim() > 0 ? in.size(0) : 0;
  const std::int64_t own = in_splits.empty() ? rows / size() : in_splits[static_cast<std::size_t>(rank())];
  const std::int64_t row_bytes = rows == 0 ? 0 : payload(in) / rows;
  at::Tensor from = in, to = out;
  const HiddenCopies copies(*backend_);
  return begin(Kind::kAllToAll, (rows - own) * row_bytes,
               backend_->alltoall_base(to, from, out_splits, in_splits, {}));
}

Pending Channel::send(const at::Tensor& tensor, int to, int tag) {
  enter(Kind::kSend);
  std::vector<at::Tensor> tensors{tensor};
  return begin(Kind::kSend, payload(tensor), backend_->send(tensors, to, tag));
}

Pending Channel::recv(const at::Tensor& tensor, int from, int tag) {
  enter(Kind::kRecv);
  std::vector<at::Tensor> tensors{tensor};
  return begin(Kind::kRecv, 0, backend_->recv(tensors, from, tag));
}

Exchange Channel::shift(const at::Tensor& mine, const at::Tensor& theirs, int stride, int tag) {
  const int n = size(), to = (rank() + stride) % n, from = (rank() + n - stride) % n;
  if (backend_->supportsCoalescing()) {
    std::vector<at::Tensor> out{mine}, in{theirs};
    enter(Kind::kSend);
    backend_->startCoalescing();
    backend_->send(out, to, tag);
    begin(Kind::kSend, payload(mine), {});
    enter(Kind::kRecv);
    backend_->recv(in, from, tag);
    return {begin(Kind::kRecv, 0, backend_->endCoalescing()), {}};
  }
  if (place_in_ring(rank(), n, stride) % 2 == 0) {
    auto sending = send(mine, to, tag);
    return {std::move(sending), recv(theirs, from, tag)};
  }
  auto receiving = recv(theirs, from, tag);
  return {std::move(receiving), send(mine, to, tag)};
}

void Channel::barrier() {
  if (alone()) return;
  enter(Kind::kBarrier);
  begin(Kind::kBarrier, 0, backend_->barrier({})).wait();
}

void Channel::abort() {
  if (backend_) backend_->abort();
}

}  // namespace sweep::comm
