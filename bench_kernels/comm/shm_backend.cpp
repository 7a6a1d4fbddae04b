#include "bench_kernels/comm/shm_backend.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/exception.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bench_kernels/comm/shm_operation.h"

namespace sweep::comm {

using std::size_t;
using Milliseconds = std::chrono::milliseconds;

namespace {

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
    std::array<bool, 2 * kMostShmRanks> stuck{};  // mail to and from each peer keeps its order
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

BackendPtr make_shm(const GroupOptions& options) {
  TORCH_CHECK_NOT_IMPLEMENTED(options.world <= kMostShmRanks, "the shm backend joins at most ", kMostShmRanks,
                              " ranks of one machine, not ", options.world);
  return c10::make_intrusive<ShmBackend>(options);
}

}  // namespace sweep::comm
