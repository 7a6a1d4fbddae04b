// Memory: this process's device memory, as address ranges without content that are charged to the node's
// devices, and its pinned memory.
#pragma once
#include <cuda.h>

#include <map>
#include <mutex>
#include <optional>

#include "worker/phantom/runtime.h"

namespace sweep::phantom {

class Memory {
 public:
  static Memory& get();
  cudaError_t allocate(void** at, std::size_t bytes, int device);
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
    int device = -1;  // -1: pinned
    bool allocated = false;
  };
  std::optional<Range> find(const void* at);

 private:
  std::mutex mutex_;
  std::map<char*, Range> ranges_;
};

}  // namespace sweep::phantom
