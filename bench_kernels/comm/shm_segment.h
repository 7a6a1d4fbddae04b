// ShmSegment: one file on memory, mapped by all ranks of a group: a ring of slots for collectives, a mailbox
// for each ordered pair of ranks, and the counters that say how far each rank is. It moves no data; it knows
// who waits for whom, and notices a peer that died, gave up or is late.
//
// Layout: Head, Line[world], Mailbox[world * world], then slots[kSlots][world][piece], then mail[world *
// world][kMail][kMailPiece]. Counters only grow and are written by one rank each; they are compared modulo
// 2^32.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sweep::comm {

// Whether a rank waits actively for another one: where there are fewer processors than ranks at work, it would keep one
// from the rank that it waits for.
constexpr bool spins_for(int ranks, int processors) {
  return processors >= ranks;
}

class ShmSegment {
 public:
  static constexpr std::uint32_t kSlots = 16;
  static constexpr std::uint32_t kMail = 32;           // pieces a mailbox holds
  static constexpr std::size_t kMailPiece = 64 << 10;  // bytes

  // How far one rank is, each word written by that rank only.
  struct alignas(64) Line {
    std::atomic<std::uint32_t> pid;      // set when the rank has joined
    std::atomic<std::uint32_t> arrived;  // pieces copied in
    std::atomic<std::uint32_t> reduced;  // pieces whose share it has reduced
    std::atomic<std::uint32_t> left;     // pieces copied out
    std::atomic<std::uint32_t>
        signal;  // grows at each change of this rank's counters, mailboxes included; futex word
    std::atomic<std::uint32_t> sleepers;  // ranks asleep on `signal`
  };
  struct MailHead {
    std::uint32_t tag;
    std::uint32_t bytes;
  };
  struct alignas(64) Mailbox {
    std::atomic<std::uint32_t> written;           // set by the sender
    MailHead heads[kMail];                        // one for each piece in flight
    alignas(64) std::atomic<std::uint32_t> read;  // set by the receiver
  };

  // Creates or opens the file and waits until all ranks have. Throws c10::DistError on timeout or abort, and
  // when the file system has no room for this rank's slots.
  ShmSegment(const std::string& path, int rank, int world, std::chrono::milliseconds timeout);
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  int rank() const { return rank_; }
  int world() const { return world_; }
  std::size_t piece_bytes() const {
    return piece_;
  }  // capacity of a rank's area of a slot; a multiple of 512

  Line& line(int rank) const { return lines_[rank]; }
  std::byte* area(std::uint32_t piece, int rank) const;  // the rank's area of the slot that this piece uses
  Mailbox& mailbox(int from, int to) const { return mailboxes_[from * world_ + to]; }
  std::byte* mail(int from, int to, std::uint32_t piece) const;
  void reserve_mail(int to);  // before the first send to that rank

  static bool reached(std::uint32_t counter, std::uint32_t goal) {
    return static_cast<std::int32_t>(counter - goal) >= 0;
  }
  void publish();  // after this rank's counters changed: wakes who sleeps on it
  // Sleeps until `peer` publishes something after `seen` (its signal before the caller looked), at most 20
  // ms; then throws c10::DistBackendError if a peer that the caller waits for is dead, or the group was
  // aborted. (A peer may end in good order once it has done its part: only what is still awaited can be
  // lost.)
  using WaitsFor = std::function<bool(int peer)>;
  void sleep_on(int peer, std::uint32_t seen, const WaitsFor& waits_for, std::chrono::milliseconds at_most);
  void abort();  // tells every rank that this one gives up

 private:
  struct Head;
  void check_peers(const WaitsFor& waits_for) const;
  void reserve(std::size_t offset, std::size_t bytes) const;
  void join(std::chrono::milliseconds timeout);
  int processors() const;

  std::string path_;
  int rank_, world_;
  std::size_t piece_, slots_offset_, mail_offset_, size_;
  int fd_ = -1;
  std::byte* base_ = nullptr;
  Head* head_ = nullptr;
  Line* lines_ = nullptr;
  Mailbox* mailboxes_ = nullptr;
  std::vector<int> pidfds_;  // one for each peer; -1: this rank
  std::vector<bool> mail_reserved_;
};

}  // namespace sweep::comm
