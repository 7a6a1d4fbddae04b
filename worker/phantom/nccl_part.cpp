// How the operations meet: each rank writes its entry and looks for the entries of the others.
#include <algorithm>
#include <cstring>

#include "worker/phantom/nccl_comm.h"

namespace sweep::phantom {
namespace {

bool agree(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.type == b.type && a.op == b.op && a.root == b.root && a.count == b.count;
}

}  // namespace

void Part::issue() {
  const auto peer = static_cast<std::size_t>(operation.root);
  number = operation.kind == Kind::kSend   ? comm->sends.begun[peer]++
           : operation.kind == Kind::kRecv ? comm->receives.begun[peer]++
                                           : comm->issued++;
}

bool Part::poll(Ns ready) {
  if (end) return false;
  if (comm->aborted) {
    end = ready;
    return true;
  }
  if (never_met || !comm->complete()) return false;
  if (comm->mirrored() || (is_message() && !comm->meets(operation.root))) {
    mirrored(ready);
    return end.has_value();
  }
  const bool was = posted;
  if (operation.kind == Kind::kSend)
    send(ready);
  else if (operation.kind == Kind::kRecv)
    receive(ready);
  else
    collective(ready);
  return posted != was || end.has_value();
}

void Part::collective(Ns ready) {
  if (comm->done != number) return;  // one after another, whatever their streams
  Place& mine = comm->member(comm->rank).places[number % 2];
  if (!posted) {
    const std::size_t bytes = payload_of(operation, comm->ranks);
    const bool reads =
        from != nullptr && (operation.kind != Kind::kBroadcast && operation.kind != Kind::kScatter
                                ? true
                                : comm->roles.place(operation.root) == comm->roles.place(comm->rank));
    if (bytes <= kPayload && reads) std::memcpy(mine.payload, from, bytes);
    mine.operation = operation;
    mine.ready = ready;
    mine.lasts = lasts;
    mine.sequence = number + 1;
    posted = true;
    comm->segment->ring_all();
  }
  if (!all_have_come()) return;
  Ns last = 0, longest = 0;
  for (int started = 0; started < comm->roles.started(); ++started) {
    const Place& place = comm->segment->member(started).places[number % 2];
    last = std::max(last, place.ready);
    longest = std::max(longest, place.lasts);
  }
  if (payload_of(operation, comm->ranks) <= kPayload) {
    std::vector<const std::byte*> all;
    for (int rank = 0; rank < comm->ranks; ++rank)
      all.push_back(comm->member(rank).places[number % 2].payload);
    deliver(all);
  }
  comm->done = number + 1;
  end = last + longest;
}

// All have come and agree. Those who are here are compared at once: a rank that disagrees may be the last.
bool Part::all_have_come() {
  bool all = true;
  for (int started = 0; started < comm->roles.started(); ++started) {
    const Place& place = comm->segment->member(started).places[number % 2];
    if (place.sequence != number + 1) {
      all = false;
    } else if (!agree(place.operation, operation)) {
      comm->disagree("operation " + std::to_string(number), comm->roles.rank_at(started), operation,
                     place.operation);
      return false;
    }
  }
  return all;
}

// Every peer came when this rank did, with the same bytes; so did the other end of a message, which carries
// none.
void Part::mirrored(Ns ready) {
  const std::size_t bytes = payload_of(operation, comm->ranks);
  if (!is_message() && bytes <= kPayload && from != nullptr) {
    const auto* mine = static_cast<const std::byte*>(from);
    const std::vector<std::byte> own(mine, mine + bytes);  // `to` may be the same place
    deliver(std::vector<const std::byte*>(static_cast<std::size_t>(comm->ranks), own.data()));
  }
  end = ready + lasts;
}

// Computes this rank's result from the payloads of all.
void Part::deliver(const std::vector<const std::byte*>& all) {
  const auto n = static_cast<std::size_t>(comm->ranks), me = static_cast<std::size_t>(comm->rank);
  const std::size_t one = operation.count * size_of(operation.type);
  const bool is_root = operation.root == comm->rank;
  const double scalar =
      operation.op >= ncclNumOps ? comm->scalars[static_cast<std::size_t>(operation.op - ncclNumOps)] : 1;
  auto* out = static_cast<std::byte*>(to);
  switch (operation.kind) {
    case Kind::kAllReduce:
      return reduce(operation, scalar, all, 0, operation.count, to);
    case Kind::kReduce:
      if (is_root) reduce(operation, scalar, all, 0, operation.count, to);
      return;
    case Kind::kReduceScatter:
      return reduce(operation, scalar, all, me * operation.count, operation.count, to);
    case Kind::kBroadcast:
      std::memcpy(out, all[static_cast<std::size_t>(operation.root)], one);
      return;
    case Kind::kScatter:
      std::memcpy(out, all[static_cast<std::size_t>(operation.root)] + me * one, one);
      return;
    case Kind::kGather:
    case Kind::kAllGather:
      for (std::size_t r = 0; r < n && (is_root || operation.kind == Kind::kAllGather); ++r)
        std::memcpy(out + r * one, all[r], one);
      return;
    case Kind::kAllToAll:
      for (std::size_t r = 0; r < n; ++r) std::memcpy(out + r * one, all[r] + me * one, one);
      return;
    default:
      return;
  }
}

// Up to kPayload bytes are buffered: the sender goes on at once while the lane has room. More waits for the
// receiver, as NCCL's sends do.
void Part::send(Ns ready) {
  const auto peer = static_cast<std::size_t>(operation.root);
  if (comm->sends.done[peer] != number) return;
  Lane& lane = comm->lane(comm->rank, operation.root);
  const std::size_t bytes = operation.count * size_of(operation.type);
  Place& message = lane.messages[number % kLane];
  if (!posted) {
    if (lane.taken + kLane <= number) return;
    if (bytes <= kPayload && bytes > 0) std::memcpy(message.payload, from, bytes);
    message.operation = operation;
    message.ready = ready;
    message.lasts = lasts;
    message.sequence = number + 1;
    posted = true;
    comm->segment->ring(comm->roles.place(operation.root));
  }
  if (bytes <= kPayload) {
    end = ready + lasts;
  } else {
    const Post& post = lane.posts[number % 2];
    if (post.sequence != number + 1) return;
    if (post.operation.count != operation.count || post.operation.type != operation.type)
      return;  // the receiver tells
    end = std::max(ready, post.ready) + lasts;
  }
  comm->sends.done[peer] = number + 1;
}

void Part::receive(Ns ready) {
  const auto peer = static_cast<std::size_t>(operation.root);
  if (comm->receives.done[peer] != number) return;
  Lane& lane = comm->lane(operation.root, comm->rank);
  if (!posted) {
    Post& post = lane.posts[number % 2];
    post.operation = operation;
    post.ready = ready;
    post.sequence = number + 1;
    posted = true;
    comm->segment->ring(comm->roles.place(operation.root));
  }
  const Place& message = lane.messages[number % kLane];
  if (message.sequence != number + 1) return;
  if (message.operation.count != operation.count || message.operation.type != operation.type) {
    comm->disagree("message " + std::to_string(number), operation.root, operation, message.operation);
    return;
  }
  const std::size_t bytes = operation.count * size_of(operation.type);
  if (bytes <= kPayload && bytes > 0) std::memcpy(to, message.payload, bytes);
  end = std::max(ready, message.ready) + std::max(lasts, message.lasts);
  comm->receives.done[peer] = number + 1;
  lane.taken = number + 1;
  comm->segment->ring(comm->roles.place(operation.root));
}

}  // namespace sweep::phantom
