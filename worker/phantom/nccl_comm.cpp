#include "worker/phantom/nccl_comm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "worker/phantom/faults.h"
#include "worker/phantom/node.h"
#include "worker/phantom/runtime.h"

namespace sweep::phantom {
namespace {

const char* type_named(int type) {
  static constexpr std::array<const char*, 12> names = {"int8",    "uint8",    "int32",       "uint32",
                                                        "int64",   "uint64",   "float16",     "float32",
                                                        "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
  return type >= 0 && type < static_cast<int>(names.size()) ? names[static_cast<std::size_t>(type)]
                                                            : "unknown";
}

const char* op_named(int op) {
  static constexpr std::array<const char*, 5> names = {"sum", "prod", "max", "min", "avg"};
  return op < 5 ? names[static_cast<std::size_t>(op)] : "scaled sum";
}

bool reduces(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kReduceScatter;
}

// The share of the link's bandwidth for a group on so many nodes. Between two entries (each has twice the
// nodes of the last) it is interpolated linearly.
double share(const std::vector<double>& shares, int nodes) {
  const double at = std::log2(static_cast<double>(std::max(nodes, 1)));
  const auto below = std::min(static_cast<std::size_t>(at), shares.size() - 1);
  const auto above = std::min(below + 1, shares.size() - 1);
  return shares[below] + (shares[above] - shares[below]) * (at - static_cast<double>(below));
}

}  // namespace

std::size_t size_of(int type) {
  static constexpr std::array<std::size_t, 12> sizes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < static_cast<int>(sizes.size()) ? sizes[static_cast<std::size_t>(type)] : 1;
}

std::string described(const Operation& o, int) {
  std::string out =
      std::string(name_of(o.kind)) + " of " + std::to_string(o.count) + " " + type_named(o.type);
  if (reduces(o.kind)) out += std::string(" (") + op_named(o.op) + ")";
  const bool rooted = o.kind == Kind::kBroadcast || o.kind == Kind::kReduce || o.kind == Kind::kGather ||
                      o.kind == Kind::kScatter;
  if (rooted) out += ", root " + std::to_string(o.root);
  return out;
}

std::size_t payload_of(const Operation& o, int ranks) {
  const std::size_t one = o.count * size_of(o.type);
  const bool of_each =
      o.kind == Kind::kReduceScatter || o.kind == Kind::kAllToAll || o.kind == Kind::kScatter;
  return of_each ? one * static_cast<std::size_t>(ranks) : one;
}

// Size over bandwidth as the algorithms for it move data ("bus bandwidth"), and a latency for the steps.
Ns collective_time(const Communicator& comm, const Operation& o) {
  const auto& d = description();
  const bool pair = o.kind == Kind::kSend || o.kind == Kind::kRecv;
  const double n = pair ? 2 : comm.ranks;
  const bool far =
      pair && comm.meets(o.root) ? comm.member(o.root).node != comm.member(comm.rank).node : comm.nodes() > 1;
  const int nodes = pair ? (far ? 2 : 1) : comm.nodes();
  double bytes = static_cast<double>(payload_of(o, comm.ranks)), rate = d.device.intra_node_bandwidth;
  if (o.kind == Kind::kAllReduce) bytes *= 2 * (n - 1) / n;
  if (o.kind == Kind::kReduceScatter || o.kind == Kind::kAllToAll) bytes *= (n - 1) / n;
  if (o.kind == Kind::kAllGather) bytes *= n - 1;
  const auto& shares = o.kind == Kind::kAllReduce ? d.profile.all_reduce_share : d.profile.other_share;
  if (!far) {
    rate *= share(shares, 1);
  } else if (pair) {
    rate = d.device.inter_node_bandwidth;
  } else {  // measured with 8 ranks a node; fewer have that much less of the node's network
    const double of_node = std::min(1.0, n / nodes / 8);
    rate = std::max(8 * d.device.inter_node_bandwidth * share(shares, nodes) * of_node, 1e6);
  }
  const double hops = pair ? 1 : std::log2(std::max(n, 2.0));
  const double latency = static_cast<double>(far ? d.profile.inter_latency : d.profile.intra_latency) +
                         hops * static_cast<double>(d.profile.hop_latency);
  return std::llround((bytes / rate * 1e9 + latency) * Faults::get().factor(Fault::kSlowLink, comm.device));
}

ncclResult_t Communicator::make(CommunicatorPtr& out, const std::string& name, int ranks, int rank,
                                const std::optional<ToldGroup>& told, bool blocking) {
  const int device = current_device();
  if (counters().rank < 0) counters().rank = rank;
  Node* node = Node::open();
  if (node == nullptr) return ncclUnhandledCudaError;
  const bool refused = Faults::get().triggered(Fault::kNcclOom, device) != nullptr;
  if (refused) node->fill(device);  // who asks for the reason finds a device that is full
  if (refused || !node->charge(device, 0)) return ncclUnhandledCudaError;
  CommunicatorPtr made(new Communicator);
  made->name = name;
  made->ranks = ranks;
  made->rank = rank;
  made->device = device;
  made->told_nodes = told ? told->nodes : mirrored_on_nodes();
  made->roles = told                   ? told->roles
                : made->told_nodes > 0 ? GroupRoles::alone(ranks, rank)
                                       : GroupRoles::all_started(ranks);
  if (made->roles.started() > 1 || made->told_nodes == 0)
    made->segment = Segment::join(name, made->roles.started(), made->roles.place(rank), device);
  if (!made->segment && made->told_nodes == 0) return ncclSystemError;
  const auto n = static_cast<std::size_t>(ranks);
  for (auto* messages : {&made->sends, &made->receives}) {
    messages->begun.resize(n);
    messages->done.resize(n);
  }
  out = made;
  Clocks::get().watch();
  if (!blocking && !made->complete()) return ncclInProgress;
  Clocks::get().wait_until([&] { return made->complete() || made->aborted; });
  return ncclSuccess;
}

bool Communicator::connect() {
  if (ranks == 1 || connected_.exchange(true)) return true;
  Node* node = Node::open();
  connected_ = node != nullptr && node->charge(device, description().device.nccl_bytes);
  return connected_;
}

Communicator::~Communicator() {
  if (Node* node = Node::open(); node != nullptr && connected_)
    node->release(device, description().device.nccl_bytes);
}

ncclResult_t Communicator::error() const {
  if (own_error != ncclSuccess) return own_error;
  if (const auto told = mirrored() ? 0 : segment->shared().error.load())
    return static_cast<ncclResult_t>(told);
  return complete() || aborted ? ncclSuccess : ncclInProgress;
}

void Communicator::disagree(const std::string& what, int other, const Operation& mine,
                            const Operation& theirs) {
  if (segment->shared().claimed.exchange(1) != 0) return;
  const bool first = rank < other;  // REQUIRES: `other` is started
  const std::string text =
      "mismatch in " + what + " of communicator " + name + ": rank " + std::to_string(first ? rank : other) +
      " calls " + phantom::described(first ? mine : theirs, ranks) + ", rank " +
      std::to_string(first ? other : rank) + " calls " + phantom::described(first ? theirs : mine, ranks);
  std::strncpy(segment->shared().message, text.c_str(), sizeof Shared::message - 1);
  segment->shared().error = ncclInvalidUsage;
  say(text);
}

void Batch::issue() {
  for (Part& part : parts_) part.issue();
}

std::optional<Ns> Batch::poll(Ns ready) {
  for (bool moved = true; moved;) {
    moved = false;
    for (Part& part : parts_) moved |= part.poll(ready);
  }
  Ns end = ready;
  for (const Part& part : parts_) {
    if (!part.end) return std::nullopt;
    end = std::max(end, *part.end);
  }
  return end;
}

Ns Batch::least() const {
  Ns out = 0;
  for (const Part& part : parts_) out = std::max(out, part.lasts);
  return out;
}

std::shared_ptr<Meeting> Batch::again() const {
  std::vector<Part> fresh = parts_;
  for (Part& part : fresh) {
    part.posted = false;
    part.end.reset();
  }
  return std::make_shared<Batch>(std::move(fresh));
}

}  // namespace sweep::phantom
