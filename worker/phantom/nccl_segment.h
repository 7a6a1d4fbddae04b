// Segment: what the ranks of one communicator share: who has come, each rank's word about the collective it
// is in, and a lane of messages for each pair. No locks: every field has one writer, and a sequence number
// that is written last. A rank that has come to collective k+1 has taken what it needs of collective k-1, so
// two places per rank are enough.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "worker/phantom/clock.h"
#include "worker/phantom/counters.h"

namespace sweep::phantom {

constexpr std::size_t kPayload = 64 << 10;  // the most that is really sent
constexpr int kLane = 8;                    // messages under way for a pair

struct Operation {  // plain data, the same on all ranks that agree
  Kind kind;
  std::int32_t type, op, root;
  std::uint64_t count;
};

struct alignas(64) Place {              // a rank's word about one collective, or one end of a message
  std::atomic<std::uint64_t> sequence;  // 1 + the number of that collective or message; written last
  Operation operation;
  Ns ready, lasts;
  std::byte payload[kPayload];
};

struct alignas(64) Post {  // a receiver that waits
  std::atomic<std::uint64_t> sequence;
  Operation operation;
  Ns ready;
};

struct alignas(64) Lane {            // one direction of one pair
  std::atomic<std::uint64_t> taken;  // messages that have ended for the receiver
  Post posts[2];
  Place messages[kLane];
};

struct alignas(64) Member {
  std::atomic<std::uint32_t> joined;
  std::uint32_t bell;
  std::int32_t pid, device;
  std::uint64_t node;
  std::atomic<std::uint64_t> splits;
  struct {
    std::int32_t color, key;
  } split[2];
  Place places[2];
};

struct Shared {
  std::atomic<std::uint32_t> claimed, error;  // a rank tells all of an error; its ncclResult_t
  char message[1024];
};

class Segment {
 public:
  // Makes or joins the segment of this name. Null, said on stderr, where the system refuses.
  static std::unique_ptr<Segment> join(const std::string& name, int ranks, int rank, int device);
  ~Segment();
  bool complete() const;  // all have come; the first to see it removes the name
  Shared& shared() const { return *shared_; }
  Member& member(int rank) const { return members_[rank]; }
  Lane& lane(int from, int to) const;
  void ring(int rank) const;
  void ring_all() const;
  int nodes() const;  // nodes of the ranks that have come
  int ranks() const { return ranks_; }

 private:
  Segment() = default;
  int fd_ = -1;
  std::string path_;
  std::size_t bytes_ = 0;
  int ranks_ = 0, rank_ = 0;
  Shared* shared_ = nullptr;
  Member* members_ = nullptr;
  Lane* lanes_ = nullptr;
  mutable std::atomic<bool> complete_{false};
};

}  // namespace sweep::phantom
