#include "worker/phantom/nccl_comm.h"

#include <algorithm>
#include <array>
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
