// Communicator: one rank's side of a communicator, and the operations on it as meetings of a stream. Its
// state is under the clocks' lock.
#pragma once
#include <nccl.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "worker/phantom/nccl_segment.h"
#include "worker/phantom/nccl_told.h"

namespace sweep::phantom {

class Communicator {
 public:
  // Waits until all ranks that are started have come, unless `blocking` is false. `told`: what the program
  // said of its group.
  static ncclResult_t make(std::shared_ptr<Communicator>& out, const std::string& name, int ranks, int rank,
                           const std::optional<ToldGroup>& told, bool blocking);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // True if the ranks' peers are not there: each peer is assumed to do what this one does, so there is no
  // waiting. Where some are there, each of them is assumed to do what its absent ranks do (`roles`).
  bool mirrored() const { return segment == nullptr; }
  bool complete() const { return mirrored() || segment->complete(); }
  int nodes() const { return told_nodes > 0 ? told_nodes : segment->nodes(); }
  // Whether this rank and that one are on one node. Where it is not there, the group's ranks are taken to lie on their
  // nodes in order, as many on each.
  bool is_near(int peer) const;
  // Messages with this peer carry something: it is there.
  bool meets(int peer) const { return !mirrored() && roles.has_started(peer); }
  // The started rank's word that stands for this rank.
  Member& member(int of) const { return segment->member(roles.place(of)); }
  Lane& lane(int from, int to) const { return segment->lane(roles.place(from), roles.place(to)); }

  std::string name;
  std::unique_ptr<Segment> segment;  // null: no other rank of the group is started (docs/rehearsal.md)
  GroupRoles roles = GroupRoles::all_started(1);
  int told_nodes = 0;  // nodes of the group; 0: those that its ranks named when they joined
  int ranks = 1, rank = 0, device = 0;
  bool aborted = false;
  std::uint64_t issued = 0, done = 0;  // collectives
  struct Messages {
    std::vector<std::uint64_t> begun, done;  // counts for each peer
  } sends, receives;
  std::uint64_t splits = 0;
  std::vector<double> scalars;  // factors of the reductions made by ncclRedOpCreatePreMulSum
  ncclResult_t own_error = ncclSuccess;

  // Takes NCCL's memory with the first operation, as NCCL connects to its peers then (NCCL_RUNTIME_CONNECT);
  // false where the device has no room.
  bool connect();
  ncclResult_t error() const;
  // All ranks are told that two of them do not agree.
  void disagree(const std::string& what, int other, const Operation& mine, const Operation& theirs);

 private:
  Communicator() = default;
  std::atomic<bool> connected_ = false;
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

// One call on a communicator. `lasts`: the duration of its group where no rank is late.
struct Part {
  CommunicatorPtr comm;
  const void* from = nullptr;
  void* to = nullptr;
  Operation operation{};  // root: of a collective; the peer of a send or receive
  Ns lasts = 0;
  bool never_met = false;  // set by a fault instruction
  // where it is
  std::uint64_t number = 0;
  bool posted = false;
  std::optional<Ns> end;

  void issue();
  bool poll(Ns ready);  // true: it moved

 private:
  bool is_message() const { return operation.kind == Kind::kSend || operation.kind == Kind::kRecv; }
  void collective(Ns ready);
  void mirrored(Ns ready);
  void send(Ns ready);
  void receive(Ns ready);
  bool all_have_come();
  void deliver(const std::vector<const std::byte*>& all);
};

class Batch : public Meeting {  // the calls of one group on one stream: they go on side by side
 public:
  explicit Batch(std::vector<Part> parts) : parts_(std::move(parts)) {}
  void issue() override;
  std::optional<Ns> poll(Ns ready) override;
  Ns least() const override;
  std::shared_ptr<Meeting> again() const override;

 private:
  std::vector<Part> parts_;
};

std::size_t size_of(int type);
std::string described(const Operation& operation, int ranks);
std::size_t payload_of(const Operation& operation, int ranks);  // bytes of this rank
// How long the calls of one group take on one stream where no rank is late: all that goes one way over a link shares
// it. REQUIRES: at least one.
Ns group_time(const std::vector<Part>& parts);

// Sums and the like of small payloads: `count` elements, starting with the `skip`-th, of each source.
void reduce(const Operation& operation, double scalar_sum, const std::vector<const std::byte*>& sources,
            std::size_t skip, std::size_t count, void* out);

double number_of(int type, const void* element);

}  // namespace sweep::phantom
