// Memory: this process's device memory, as address ranges without content that are charged to the node's
// devices, and its pinned and managed memory.
#pragma once
#include <cuda.h>

#include <map>
#include <mutex>
#include <optional>

#include "worker/phantom/runtime.h"

namespace sweep::phantom {

enum class MemoryKind {
  kMapped,     // allocated by the virtual memory calls
  kAllocated,  // allocated by cudaMalloc
  kPooled,     // allocated by cudaMallocAsync
  kManaged,  // allocated by cudaMallocManaged; no device is charged, since a GPU moves it to the host when it needs room
  kPinned
};

// A device's pool of cudaMallocAsync: it keeps what it got, up to its threshold, until it is trimmed.
struct Pool {
  std::uint64_t used = 0, most_used = 0, reserved = 0, most_reserved = 0, threshold = 0;
};

class Memory {
 public:
  static Memory& get();
  // `kind`: one of those that `free` takes back. `device` does not matter to managed memory.
  cudaError_t allocate(void** at, std::size_t bytes, int device, MemoryKind kind = MemoryKind::kAllocated);
  cudaError_t free(void* at);
  // Physical memory of the virtual memory calls: charged, without an address.
  cudaError_t charge(std::size_t bytes, int device);
  void release(std::size_t bytes, int device);
  void map(void* at, std::size_t bytes, int device);
  void unmap(void* at, std::size_t bytes);
  void pin(void* at, std::size_t bytes);
  std::optional<std::size_t> unpin(void* at);  // its size; nullopt: it was not pinned
  struct Range {
    char* begin = nullptr;
    std::size_t bytes = 0;
    int device = -1;  // -1: pinned or managed
    MemoryKind kind = MemoryKind::kMapped;
  };
  std::optional<Range> find(const void* at);
  Pool pool(int device);
  void set_threshold(int device, std::uint64_t bytes);
  // The most used, or the most reserved, is what is so now.
  void reset_most_used(int device);
  void reset_most_reserved(int device);
  void trim(int device, std::uint64_t keep);

 private:
  cudaError_t take(const Range& range);
  void give_back(const Range& range);
  cudaError_t take_from_pool(std::size_t bytes, int device);
  void trim_locked(int device, std::uint64_t keep);
  std::mutex mutex_, pools_mutex_;
  std::map<char*, Range> ranges_;
  std::map<int, Pool> pools_;
};

}  // namespace sweep::phantom
