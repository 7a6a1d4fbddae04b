// How long NCCL's operations take: bytes over the links that they share, and a latency.
#include <algorithm>
#include <cmath>

#include "worker/phantom/faults.h"
#include "worker/phantom/nccl_comm.h"

namespace sweep::phantom {
namespace {

// The share of the link's bandwidth for a group on so many nodes of 8 ranks. Between two entries (each has twice the
// nodes of the last) it is interpolated linearly.
double share(const std::vector<double>& shares, double nodes) {
  const double at = std::log2(std::max(nodes, 1.0));
  const auto below = std::min(static_cast<std::size_t>(at), shares.size() - 1);
  const auto above = std::min(below + 1, shares.size() - 1);
  return shares[below] + (shares[above] - shares[below]) * (at - static_cast<double>(below));
}

// The nanoseconds that one call adds to its group: how long its bytes keep each direction of the two links busy.
struct Load {
  struct Link {
    double out = 0, in = 0;
  } node, network;
  double latency = 0;

  void operator+=(const Load& other) {
    node.out += other.node.out, node.in += other.node.in;
    network.out += other.network.out, network.in += other.network.in;
    latency = std::max(latency, other.latency);
  }
  double time() const { return latency + std::max({node.out, node.in, network.out, network.in}); }
};

double latency_of(bool far, double hops) {
  const Profile& profile = description().profile;
  return static_cast<double>(far ? profile.inter_latency : profile.intra_latency) +
         hops * static_cast<double>(profile.hop_latency);
}

// A message to, or from, a peer; one with the rank itself takes no link.
Load message_load(const Communicator& comm, Kind kind, int peer, double bytes) {
  const auto& d = description();
  const bool far = !comm.is_near(peer);
  Load out;
  out.latency = latency_of(far, 1) + (far ? static_cast<double>(description().profile.far_message) : 0);
  if (peer == comm.rank) return out;
  auto& link = far ? out.network : out.node;
  const double rate =
      far ? d.device.inter_node_bandwidth : d.device.intra_node_bandwidth * share(d.profile.other_share, 1);
  (kind == Kind::kSend ? link.out : link.in) = bytes / rate * 1e9;
  return out;
}

// A ring's size over bandwidth ("bus bandwidth"), and a latency for the steps.
Load ring_load(const Communicator& comm, const Operation& o) {
  const auto& d = description();
  const double n = comm.ranks;
  const int nodes = comm.nodes();
  double bytes = static_cast<double>(payload_of(o, comm.ranks));
  if (o.kind == Kind::kAllReduce) bytes *= 2 * (n - 1) / n;
  if (o.kind == Kind::kReduceScatter) bytes *= (n - 1) / n;
  if (o.kind == Kind::kAllGather) bytes *= n - 1;
  const auto& shares = o.kind == Kind::kAllReduce ? d.profile.all_reduce_share : d.profile.other_share;
  double rate = d.device.intra_node_bandwidth * share(shares, 1);
  if (nodes > 1) {
    // Shares were measured with 8 ranks a node; fewer have that much less of the node's network. They fall with the steps of
    // the ring, so with its ranks: one rank on each of 32 nodes takes as many steps as 4 nodes of 8.
    const double of_node = std::min(1.0, n / nodes / 8), full_nodes = std::clamp(n / 8, 2.0, 1.0 * nodes);
    rate = std::max(8 * d.device.inter_node_bandwidth * share(shares, full_nodes) * of_node, 1e6);
  }
  Load out;
  out.latency = latency_of(nodes > 1, std::log2(std::max(n, 2.0)));
  auto& link = nodes > 1 ? out.network : out.node;
  link.out = link.in = bytes / rate * 1e9;
  return out;
}

// NCCL's all-to-all is a group of messages too.
Load load_of(const Communicator& comm, const Operation& o) {
  const auto bytes = static_cast<double>(o.count * size_of(o.type));
  if (o.kind == Kind::kSend || o.kind == Kind::kRecv) return message_load(comm, o.kind, o.root, bytes);
  if (o.kind != Kind::kAllToAll) return ring_load(comm, o);
  Load out;
  for (int peer = 0; peer < comm.ranks; ++peer)
    for (const Kind way : {Kind::kSend, Kind::kRecv}) out += message_load(comm, way, peer, bytes);
  return out;
}

}  // namespace

bool Communicator::is_near(int peer) const {
  if (meets(peer)) return member(peer).joined == 0 || member(peer).node == member(rank).node;
  const auto node_of = [&](int each) { return static_cast<std::int64_t>(each) * nodes() / ranks; };
  return node_of(peer) == node_of(rank);
}

Ns group_time(const std::vector<Part>& parts) {
  Load all;
  for (const Part& part : parts) all += load_of(*part.comm, part.operation);
  return std::llround(all.time() * Faults::get().factor(Fault::kSlowLink, parts.front().comm->device));
}

}  // namespace sweep::phantom
