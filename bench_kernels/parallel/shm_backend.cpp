#include "bench_kernels/parallel/shm_backend.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/exception.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bench_kernels/parallel/reduce.h"

namespace sweep::parallel {

using std::size_t;
using Milliseconds = std::chrono::milliseconds;
constexpr int kMostRanks = 64;
constexpr size_t kOnePhase =
    8 << 10;  // below it every rank reduces everything itself: one round of waiting, not two
constexpr size_t kShareElements = 16;  // shares begin at multiples of this many elements

// An operation moves through the ring in pieces; each piece arrives (copied in), has this rank's share
// reduced, and leaves (copied out). Or it is mail between two ranks.
struct ShmOperation {
  c10d::OpType kind = c10d::OpType::UNKNOWN;
  std::vector<at::Tensor> tensors;  // kept until waited for

  using Step = std::function<void(std::uint32_t piece, std::uint32_t slot)>;
  Step copy_in, reduce_share,
      copy_out;  // reduce_share: absent where nothing is reduced before the pieces leave
  std::uint32_t pieces = 1, arrived = 0, reduced = 0, left = 0;

  int peer = -1;  // of mail
  bool sends = false;
  std::uint32_t tag = 0;
  std::byte* data = nullptr;
  size_t bytes = 0, moved = 0;
  bool moved_all = false;

  bool done() const { return peer >= 0 ? moved_all : left == pieces; }
};

namespace {

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

std::uint32_t pieces_for(size_t bytes, size_t piece) {
  return static_cast<std::uint32_t>(std::max<size_t>(1, (bytes + piece - 1) / piece));
}

void check_tensor(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu() && tensor.is_contiguous(),
              "the shm backend moves contiguous CPU tensors only; got one on ", tensor.device().str());
}

at::Tensor& only(std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "the shm backend takes one tensor for each call, not ", tensors.size());
  check_tensor(tensors[0]);
  return tensors[0];
}

class ShmWork final : public c10d::Work {
 public:
  ShmWork(c10::intrusive_ptr<ShmBackend> backend, std::shared_ptr<ShmOperation> operation,
          Milliseconds timeout)
      : Work(backend->getRank(), operation->kind),
        backend_(std::move(backend)),
        operation_(std::move(operation)),
        timeout_(timeout) {}

  bool isCompleted() override {
    backend_->progress();
    return operation_->done();
  }
  bool isSuccess() const override { return operation_->done(); }
  bool wait(Milliseconds timeout) override {
    backend_->finish(*operation_, timeout.count() > 0 ? timeout : timeout_);
    operation_->tensors.clear();
    return true;
  }
  void synchronize() override { wait(kNoTimeout); }
  void abort() override { backend_->abort(); }

 private:
  c10::intrusive_ptr<ShmBackend> backend_;
  std::shared_ptr<ShmOperation> operation_;
  Milliseconds timeout_;
};

using Sources = std::array<const std::byte*, kMostRanks>;

std::span<const std::byte* const> sources_of(const ShmSegment& segment, std::uint32_t slot, size_t offset,
                                             Sources& storage) {
  for (int rank = 0; rank < segment.world(); ++rank) storage[rank] = segment.area(slot, rank) + offset;
  return {storage.data(), static_cast<size_t>(segment.world())};
}

// The allreduce of `bytes` at `data`. Large pieces: each rank reduces its share in place into rank 0's area,
// then all copy the whole. Small ones: each rank reduces all of it into its own tensor.
std::shared_ptr<ShmOperation> allreduce_operation(const ShmSegment& segment, std::byte* data, size_t bytes,
                                                  c10::ScalarType type, c10d::ReduceOp::RedOpType op) {
  check_reducible(type, op);
  const size_t piece = segment.piece_bytes(), width = c10::elementSize(type);
  const auto size_of = [=](std::uint32_t index) {
    return std::min(piece, bytes - std::min(bytes, index * piece));
  };
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::ALLREDUCE;
  operation->pieces = pieces_for(bytes, piece);
  operation->copy_in = [=, &segment](std::uint32_t index, std::uint32_t slot) {
    std::memcpy(segment.area(slot, segment.rank()), data + index * piece, size_of(index));
  };
  if (bytes <= kOnePhase) {
    operation->copy_out = [=, &segment](std::uint32_t, std::uint32_t slot) {
      Sources storage;
      reduce_in_order(type, op, sources_of(segment, slot, 0, storage), data, bytes / width);
    };
    return operation;
  }
  operation->reduce_share = [=, &segment](std::uint32_t index, std::uint32_t slot) {
    const size_t count = size_of(index) / width, ranks = segment.world(), rank = segment.rank();
    const size_t share = ((count + ranks - 1) / ranks + kShareElements - 1) / kShareElements * kShareElements;
    const size_t begin = std::min(count, rank * share), end = std::min(count, begin + share);
    Sources storage;
    reduce_in_order(type, op, sources_of(segment, slot, begin * width, storage),
                    segment.area(slot, 0) + begin * width, end - begin);
  };
  operation->copy_out = [=, &segment](std::uint32_t index, std::uint32_t slot) {
    std::memcpy(data + index * piece, segment.area(slot, 0), size_of(index));
  };
  return operation;
}

struct Parts {
  std::vector<size_t> offset, bytes;
  size_t largest = 0;
};

// How a tensor divides over the ranks along its first dimension; no splits: evenly.
Parts parts_of(const at::Tensor& tensor, const std::vector<std::int64_t>& splits, int world) {
  const size_t total = tensor.nbytes();
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  TORCH_CHECK(splits.empty() ? rows % world == 0 : splits.size() == static_cast<size_t>(world),
              "alltoall_base: ", rows, " rows do not divide over ", world,
              " ranks, or not one split for each rank");
  const size_t row = rows == 0 ? 0 : total / static_cast<size_t>(rows);
  Parts parts;
  size_t offset = 0;
  for (int rank = 0; rank < world; ++rank) {
    const size_t bytes = row * static_cast<size_t>(splits.empty() ? rows / world : splits[rank]);
    parts.offset.push_back(offset);
    parts.bytes.push_back(bytes);
    parts.largest = std::max(parts.largest, bytes);
    offset += bytes;
  }
  TORCH_CHECK(offset == total, "alltoall_base: the splits add up to ", offset, " bytes, the tensor has ",
              total);
  return parts;
}

}  // namespace

ShmBackend::ShmBackend(const GroupOptions& options)
    : Backend(options.rank, options.world),
      segment_(options.directory + "/shm_" + options.name, options.rank, options.world, options.timeout),
      timeout_(options.timeout),
      sent_(options.world, 0),
      received_(options.world, 0) {}

ShmBackend::~ShmBackend() = default;

bool ShmBackend::all_reached(std::atomic<std::uint32_t> ShmSegment::Line::*counter,
                             std::uint32_t goal) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!ShmSegment::reached((segment_.line(rank).*counter).load(std::memory_order_acquire), goal))
      return false;
  }
  return true;
}

bool ShmBackend::arrive() {
  bool moved = false;
  for (const auto& operation : collectives_) {
    for (; operation->arrived < operation->pieces; ++operation->arrived) {
      if (!all_reached(&ShmSegment::Line::left, arrived_ + 1 - ShmSegment::kSlots)) return moved;
      operation->copy_in(operation->arrived, arrived_);
      segment_.line(rank_).arrived.store(++arrived_, std::memory_order_release);
      moved = true;
    }
  }
  return moved;
}

bool ShmBackend::reduce_shares() {
  bool moved = false;
  for (const auto& operation : collectives_) {
    for (; operation->reduced < operation->arrived; ++operation->reduced) {
      if (operation->reduce_share) {
        if (!all_reached(&ShmSegment::Line::arrived, reduced_ + 1)) return moved;
        operation->reduce_share(operation->reduced, reduced_);
      }
      segment_.line(rank_).reduced.store(++reduced_, std::memory_order_release);
      moved = true;
    }
    if (operation->reduced < operation->pieces) break;
  }
  return moved;
}

bool ShmBackend::leave() {
  bool moved = false;
  for (const auto& operation : collectives_) {
    const auto counter = operation->reduce_share ? &ShmSegment::Line::reduced : &ShmSegment::Line::arrived;
    for (; operation->left < operation->reduced; ++operation->left) {
      if (!all_reached(counter, left_ + 1)) return moved;
      operation->copy_out(operation->left, left_);
      segment_.line(rank_).left.store(++left_, std::memory_order_release);
      moved = true;
    }
    if (operation->left < operation->pieces) break;
  }
  return moved;
}

// Mail goes in pieces of kMailPiece; a message of no bytes is one empty piece.
bool ShmBackend::move_mail(ShmOperation& mail) {
  bool moved = false;
  ShmSegment::Mailbox& box =
      mail.sends ? segment_.mailbox(rank_, mail.peer) : segment_.mailbox(mail.peer, rank_);
  std::uint32_t& count = mail.sends ? sent_[mail.peer] : received_[mail.peer];
  while (!mail.moved_all) {
    if (mail.sends
            ? !ShmSegment::reached(box.read.load(std::memory_order_acquire), count + 1 - ShmSegment::kMail)
            : !ShmSegment::reached(box.written.load(std::memory_order_acquire), count + 1)) {
      return moved;
    }
    const size_t n = std::min(ShmSegment::kMailPiece, mail.bytes - mail.moved);
    ShmSegment::MailHead& head = box.heads[count % ShmSegment::kMail];
    std::byte* piece =
        mail.sends ? segment_.mail(rank_, mail.peer, count) : segment_.mail(mail.peer, rank_, count);
    if (mail.sends) {
      head = {mail.tag, static_cast<std::uint32_t>(n)};
      std::memcpy(piece, mail.data + mail.moved, n);
    } else {
      TORCH_CHECK_WITH(DistBackendError, head.tag == mail.tag && head.bytes == n, "rank ", mail.peer,
                       " sent ", head.bytes, " bytes with tag ", head.tag, " where ", n, " bytes with tag ",
                       mail.tag, " were expected");
      std::memcpy(mail.data + mail.moved, piece, n);
    }
    mail.moved += n;
    mail.moved_all = mail.moved == mail.bytes;
    (mail.sends ? box.written : box.read).store(++count, std::memory_order_release);
    moved = true;
  }
  return moved;
}

void ShmBackend::progress() {
  for (bool moved = true; moved;) {
    moved = arrive();
    moved = reduce_shares() || moved;
    moved = leave() || moved;
    std::array<bool, 2 * kMostRanks> stuck{};  // mail to and from each peer keeps its order
    for (const auto& mail : mail_) {
      bool& waits = stuck[2 * mail->peer + (mail->sends ? 1 : 0)];
      if (waits) continue;
      moved = move_mail(*mail) || moved;
      waits = !mail->moved_all;
    }
    if (moved) segment_.publish();
    while (!collectives_.empty() && collectives_.front()->done()) collectives_.pop_front();
    std::erase_if(mail_, [](const OperationPtr& mail) { return mail->done(); });
  }
}

bool ShmBackend::waits_for(const ShmOperation& operation, int peer) const {
  if (operation.done()) return false;
  const ShmSegment::Line& line = segment_.line(peer);
  if (operation.peer >= 0) {
    if (peer != operation.peer) return false;
    return operation.sends
               ? !ShmSegment::reached(segment_.mailbox(rank_, peer).read.load(),
                                      sent_[peer] + 1 - ShmSegment::kMail)
               : !ShmSegment::reached(segment_.mailbox(peer, rank_).written.load(), received_[peer] + 1);
  }
  // Pieces go in order: what holds the group's next arrival, reduction or departure holds this operation too.
  if (arrived_ != queued_ && !ShmSegment::reached(line.left.load(), arrived_ + 1 - ShmSegment::kSlots))
    return true;
  if (reduced_ != arrived_ && !ShmSegment::reached(line.arrived.load(), reduced_ + 1)) return true;
  if (left_ == reduced_ || collectives_.empty()) return false;
  const auto counter =
      collectives_.front()->reduce_share ? &ShmSegment::Line::reduced : &ShmSegment::Line::arrived;
  return !ShmSegment::reached((line.*counter).load(), left_ + 1);
}

void ShmBackend::finish(const ShmOperation& operation, Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto blocked_on = [&](int peer) { return peer != rank_ && waits_for(operation, peer); };
  const Milliseconds longest(collectives_.empty() || mail_.empty() ? 20 : 1);
  while (true) {
    int peer = 0;
    while (peer < size_ && !blocked_on(peer)) ++peer;
    const std::uint32_t seen = peer < size_ ? segment_.line(peer).signal.load() : 0;
    progress();
    if (operation.done()) return;
    if (peer == size_ || !blocked_on(peer)) continue;
    segment_.sleep_on(peer, seen, blocked_on, longest);
    if (std::chrono::steady_clock::now() > deadline && blocked_on(peer)) {
      C10D_THROW_ERROR(TimeoutError, c10d::opTypeToString(operation.kind), " waited for rank ", peer,
                       " longer than ", timeout.count(), " ms");
    }
  }
}

ShmBackend::WorkPtr ShmBackend::start(OperationPtr operation, Milliseconds timeout) {
  if (operation->peer < 0) {
    collectives_.push_back(operation);
    queued_ += operation->pieces;
  } else {
    mail_.push_back(operation);
  }
  progress();
  return c10::make_intrusive<ShmWork>(c10::intrusive_ptr<ShmBackend>::reclaim_copy(this),
                                      std::move(operation),
                                      timeout == c10d::kUnsetTimeout ? timeout_ : timeout);
}

ShmBackend::WorkPtr ShmBackend::allreduce(std::vector<at::Tensor>& tensors,
                                          const c10d::AllreduceOptions& options) {
  at::Tensor& tensor = only(tensors);
  auto operation = allreduce_operation(segment_, bytes_of(tensor), tensor.nbytes(), tensor.scalar_type(),
                                       options.reduceOp.op_);
  operation->tensors = {tensor};
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::broadcast(std::vector<at::Tensor>& tensors,
                                          const c10d::BroadcastOptions& options) {
  at::Tensor& tensor = only(tensors);
  const size_t bytes = tensor.nbytes(), piece = segment_.piece_bytes();
  const int root = static_cast<int>(options.rootRank);
  std::byte* data = bytes_of(tensor);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::BROADCAST;
  operation->tensors = {tensor};
  operation->pieces = pieces_for(bytes, piece);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    if (rank_ == root)
      std::memcpy(segment_.area(slot, root), data + index * piece, std::min(piece, bytes - index * piece));
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    if (rank_ != root)
      std::memcpy(data + index * piece, segment_.area(slot, root), std::min(piece, bytes - index * piece));
  };
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                const c10d::AllgatherOptions& options) {
  check_tensor(output);
  check_tensor(input);
  const size_t bytes = input.nbytes(), piece = segment_.piece_bytes();
  TORCH_CHECK(output.nbytes() == bytes * size_ && output.scalar_type() == input.scalar_type(),
              "_allgather_base: the output must hold ", size_, " inputs of the same type");
  std::byte *to = bytes_of(output), *from = bytes_of(input);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::_ALLGATHER_BASE;
  operation->tensors = {output, input};
  operation->pieces = pieces_for(bytes, piece);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    std::memcpy(segment_.area(slot, rank_), from + index * piece, std::min(piece, bytes - index * piece));
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    for (int rank = 0; rank < size_; ++rank) {
      std::memcpy(to + rank * bytes + index * piece, segment_.area(slot, rank),
                  std::min(piece, bytes - index * piece));
    }
  };
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                     const c10d::ReduceScatterOptions& options) {
  check_tensor(output);
  check_tensor(input);
  const auto type = input.scalar_type();
  const auto op = options.reduceOp.op_;
  check_reducible(type, op);
  const size_t bytes = output.nbytes(), width = c10::elementSize(type);
  TORCH_CHECK(input.nbytes() == bytes * size_ && output.scalar_type() == type,
              "_reduce_scatter_base: the input must hold ", size_, " outputs of the same type");
  const size_t part = segment_.piece_bytes() / size_ / 64 * 64;  // of an area, for each receiving rank
  std::byte *to = bytes_of(output), *from = bytes_of(input);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::_REDUCE_SCATTER_BASE;
  operation->tensors = {output, input};
  operation->pieces = pieces_for(bytes, part);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    const size_t n = std::min(part, bytes - index * part);
    for (int rank = 0; rank < size_; ++rank) {
      std::memcpy(segment_.area(slot, rank_) + rank * part, from + rank * bytes + index * part, n);
    }
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    Sources storage;
    reduce_in_order(type, op, sources_of(segment_, slot, rank_ * part, storage), to + index * part,
                    std::min(part, bytes - index * part) / width);
  };
  return start(std::move(operation), options.timeout);
}

std::int64_t ShmBackend::agree_on_largest(std::int64_t mine) {
  auto operation = allreduce_operation(segment_, reinterpret_cast<std::byte*>(&mine), sizeof(mine),
                                       c10::ScalarType::Long, c10d::ReduceOp::MAX);
  start(operation, timeout_)->wait();
  return mine;
}

ShmBackend::WorkPtr ShmBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                              std::vector<std::int64_t>& output_splits,
                                              std::vector<std::int64_t>& input_splits,
                                              const c10d::AllToAllOptions& options) {
  check_tensor(output);
  check_tensor(input);
  const Parts in = parts_of(input, input_splits, size_), out = parts_of(output, output_splits, size_);
  const bool even = input_splits.empty() && output_splits.empty();
  const size_t largest =
      even ? in.largest : static_cast<size_t>(agree_on_largest(static_cast<std::int64_t>(in.largest)));
  const size_t part = segment_.piece_bytes() / size_ / 64 * 64;
  const auto size_of = [part](size_t bytes, std::uint32_t index) {
    return bytes <= index * part ? size_t{0} : std::min(part, bytes - index * part);
  };
  std::byte *to = bytes_of(output), *from = bytes_of(input);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::ALLTOALL_BASE;
  operation->tensors = {output, input};
  operation->pieces = pieces_for(largest, part);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    for (int rank = 0; rank < size_; ++rank) {
      const size_t n = size_of(in.bytes[rank], index);
      if (n > 0)
        std::memcpy(segment_.area(slot, rank_) + rank * part, from + in.offset[rank] + index * part, n);
    }
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    for (int rank = 0; rank < size_; ++rank) {
      const size_t n = size_of(out.bytes[rank], index);
      if (n > 0)
        std::memcpy(to + out.offset[rank] + index * part, segment_.area(slot, rank) + rank_ * part, n);
    }
  };
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  at::Tensor& tensor = only(tensors);
  TORCH_CHECK(to >= 0 && to < size_ && to != rank_, "send: rank ", to, " is not a peer of rank ", rank_,
              " of ", size_);
  segment_.reserve_mail(to);
  auto mail = std::make_shared<ShmOperation>();
  mail->kind = c10d::OpType::SEND;
  mail->tensors = {tensor};
  mail->peer = to;
  mail->sends = true;
  mail->tag = static_cast<std::uint32_t>(tag);
  mail->data = bytes_of(tensor);
  mail->bytes = tensor.nbytes();
  return start(std::move(mail), c10d::kUnsetTimeout);
}

ShmBackend::WorkPtr ShmBackend::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  at::Tensor& tensor = only(tensors);
  TORCH_CHECK(from >= 0 && from < size_ && from != rank_, "recv: rank ", from, " is not a peer of rank ",
              rank_, " of ", size_);
  auto mail = std::make_shared<ShmOperation>();
  mail->kind = c10d::OpType::RECV;
  mail->tensors = {tensor};
  mail->peer = from;
  mail->tag = static_cast<std::uint32_t>(tag);
  mail->data = bytes_of(tensor);
  mail->bytes = tensor.nbytes();
  return start(std::move(mail), c10d::kUnsetTimeout);
}

ShmBackend::WorkPtr ShmBackend::barrier(const c10d::BarrierOptions& options) {
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::BARRIER;
  operation->copy_in = operation->copy_out = [](std::uint32_t, std::uint32_t) {};
  return start(std::move(operation), options.timeout);
}

BackendPtr make_shm(const GroupOptions& options) {
  TORCH_CHECK_NOT_IMPLEMENTED(options.world <= kMostRanks, "the shm backend joins at most ", kMostRanks,
                              " ranks of one machine, not ", options.world);
  return c10::make_intrusive<ShmBackend>(options);
}

}  // namespace sweep::parallel
