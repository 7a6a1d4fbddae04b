#include "worker/phantom/node.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include "worker/phantom/shared_file.h"

namespace sweep::phantom {
namespace {

// Holds the file's lock, that of all processes of the node, where it can be had.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) {
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FileLock() { ::flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

struct flock byte_of(int entry, short kind) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = entry;
  range.l_len = 1;
  return range;
}

// This process as seen from outside its PID namespace, where /proc tells.
pid_t outer_pid() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("NSpid:", 0) == 0) {
      std::istringstream words(line.substr(6));
      pid_t pid = 0;
      if (words >> pid) return pid;
    }
  return ::getpid();
}

}  // namespace

Node* Node::open() {
  static Node* node = []() -> Node* {
    remove_left_over("node-");
    const SharedFile file = open_shared(shared_prefix() + "node-" + description().node, sizeof(NodeFile));
    return file.at == nullptr ? nullptr : new Node(file.fd, static_cast<NodeFile*>(file.at));
  }();
  return node;
}

// An entry counts as alive if the kernel cannot be asked.
bool Node::lives(int entry) const {
  if (entry == entry_) return true;
  auto range = byte_of(entry, F_WRLCK);
  return ::fcntl(fd_, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

void Node::drop_the_dead() {
  for (int i = 0; i < kMostProcesses; ++i) {
    NodeEntry& entry = file_->entries[i];
    if (entry.pid == 0 || lives(i)) continue;
    for (int d = 0; d < kMostDevices; ++d) {
      file_->busy_of_dead[d] += entry.busy[d].exchange(0);
      file_->clock_of_dead[d] += entry.clock[d].exchange(0);
      entry.bytes[d] = 0;
    }
    entry.context = 0;
    entry.pid = 0;
  }
}

NodeEntry* Node::mine() {
  if (entry_ >= 0) return &file_->entries[entry_];
  for (int i = 0; i < kMostProcesses; ++i) {
    auto range = byte_of(i, F_WRLCK);
    if (file_->entries[i].pid != 0 || ::fcntl(fd_, F_OFD_SETLK, &range) != 0) continue;
    entry_ = i;
    file_->entries[i].pid = outer_pid();
    return &file_->entries[i];
  }
  return nullptr;
}

bool Node::charge(int device, std::uint64_t bytes) {
  const std::optional<bool> charged = charge_entry(device, bytes);
  if (!charged)  // said without the lock, which would stop all processes of the node while stderr is full
    say_once("entries",
             "no memory: " + std::to_string(kMostProcesses) + " other processes use GPUs of this node");
  return charged.value_or(false);
}

std::optional<bool> Node::charge_entry(int device, std::uint64_t bytes) {
  const FileLock lock(fd_);
  drop_the_dead();
  NodeEntry* entry = mine();
  if (entry == nullptr) return std::nullopt;
  const Device& of = description().device;
  const bool first = (entry->context & (1u << device)) == 0;
  const std::uint64_t asked = bytes + (first ? of.context_bytes : 0);
  std::uint64_t used = 0;
  for (const NodeEntry& other : file_->entries) used += other.bytes[device];
  if (asked > of.memory_bytes || used > of.memory_bytes - asked) return false;
  entry->bytes[device] += asked;
  entry->context |= 1u << device;
  return true;
}

void Node::fill(int device) {
  charge(device, 0);
  const std::uint64_t used = use(device).used, memory = description().device.memory_bytes;
  if (used < memory) charge(device, memory - used);
}

void Node::release(int device, std::uint64_t bytes) {
  if (entry_ >= 0) file_->entries[entry_].bytes[device] -= bytes;
}

DeviceUse Node::use(int device) {
  const FileLock lock(fd_);
  drop_the_dead();
  DeviceUse out;
  out.busy = file_->busy_of_dead[device];
  out.clock = file_->clock_of_dead[device];
  for (const NodeEntry& entry : file_->entries) {
    if (entry.pid == 0 || (entry.context & (1u << device)) == 0) continue;
    out.used += entry.bytes[device];
    out.busy += entry.busy[device];
    out.clock += entry.clock[device];
    out.processes.push_back({entry.pid, entry.bytes[device]});
  }
  return out;
}

void Node::report_time(int device, std::int64_t busy, std::int64_t clock) {
  if (entry_ < 0) return;
  file_->entries[entry_].busy[device] = busy;
  file_->entries[entry_].clock[device] = clock;
}

void Node::raise_xid(int device, std::uint64_t code) {
  file_->xid[device] = code;
  ++file_->xid_count[device];
}

void Node::after_fork_in_child() {
  const int of_parent = fd_;
  fd_ = reopened(of_parent);
  ::close(of_parent);  // else the entry would live as long as this child
  entry_ = -1;
}

}  // namespace sweep::phantom
