// Node: the devices of one node as all its processes see them, in a shared file: who holds how many bytes of
// which device, how busy it was, its last Xid. An entry lives as long as its process: the kernel drops the
// process's lock on the entry, and whoever looks next frees it.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "worker/phantom/description.h"

namespace sweep::phantom {

constexpr int kMostDevices = 16, kMostProcesses = 512;

struct NodeEntry {  // a process's entry in the shared file
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> context;  // bit d: has a context on device d
  std::atomic<std::uint64_t> bytes[kMostDevices];
  std::atomic<std::int64_t> busy[kMostDevices], clock[kMostDevices];
};

struct NodeFile {
  std::atomic<std::uint64_t> xid[kMostDevices];        // code of the last one; 0: none
  std::atomic<std::uint64_t> xid_count[kMostDevices];  // how many there were
  std::atomic<std::int64_t> busy_of_dead[kMostDevices], clock_of_dead[kMostDevices];
  NodeEntry entries[kMostProcesses];
};

struct DeviceUse {
  std::uint64_t used = 0;
  std::int64_t busy = 0, clock = 0;  // summed over processes, dead ones too
  struct Process {
    pid_t pid;
    std::uint64_t bytes;
  };
  std::vector<Process> processes;
};

class Node {
 public:
  // The node of this process (SWEEP_PHANTOM_NODE). Null, said on stderr, where no shared file can be made.
  static Node* open();

  // Charges this process, a context where it has none yet; false where the device has no room.
  // False too where 512 other processes have the entries; stderr says so.
  bool charge(int device, std::uint64_t bytes);
  void release(int device, std::uint64_t bytes);
  void fill(int device);  // charges this process with all that is free
  void retain_context(int device) { charge(device, 0); }
  DeviceUse use(int device);
  void report_time(int device, std::int64_t busy, std::int64_t clock);
  void raise_xid(int device, std::uint64_t code);
  std::uint64_t xid_count(int device) const { return file_->xid_count[device]; }
  std::uint64_t xid(int device) const { return file_->xid[device]; }
  void after_fork_in_child();

 private:
  Node(int fd, NodeFile* file) : fd_(fd), file_(file) {}
  std::optional<bool> charge_entry(int device, std::uint64_t bytes);  // nullopt: all entries are taken
  NodeEntry* mine();
  bool lives(int entry) const;
  void drop_the_dead();
  int fd_;
  NodeFile* file_;
  int entry_ = -1;
};

}  // namespace sweep::phantom
