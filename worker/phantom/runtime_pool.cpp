// The CUDA runtime's memory in the order of a stream, and the pools that it comes from: one for each device.
#include <algorithm>
#include <cstring>
#include <optional>

#include "worker/phantom/memory.h"

using namespace sweep::phantom;

namespace {

// A pool's handle is 1 + the number of its device as the program counts.
cudaMemPool_t pool_handle(int ordinal) {
  return reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(ordinal) + 1);
}

std::optional<int> device_of_pool(cudaMemPool_t pool) {
  const auto number = reinterpret_cast<std::uintptr_t>(pool);
  if (number == 0 || number > static_cast<std::uintptr_t>(Runtime::get().visible())) return std::nullopt;
  return Runtime::get().device_of(static_cast<int>(number - 1));
}

// nullopt: a setting of reuse, which changes nothing here.
std::optional<std::uint64_t> value_of(const Pool& pool, cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      return pool.threshold;
    case cudaMemPoolAttrReservedMemCurrent:
      return pool.reserved;
    case cudaMemPoolAttrReservedMemHigh:
      return pool.most_reserved;
    case cudaMemPoolAttrUsedMemCurrent:
      return pool.used;
    case cudaMemPoolAttrUsedMemHigh:
      return pool.most_used;
    default:
      return std::nullopt;
  }
}

}  // namespace

PHANTOM_API cudaError_t cudaMallocAsync(void** at, std::size_t bytes, cudaStream_t) {
  if (const auto error = Runtime::get().begin()) return error;
  return result(Memory::get().allocate(at, bytes, current_device(), MemoryKind::kPooled));
}

PHANTOM_API cudaError_t cudaFreeAsync(void* at, cudaStream_t stream) {
  if (const auto error = Runtime::get().begin()) return error;
  if (!Memory::get().find(at)) return result(cudaErrorInvalidValue);
  Work work;
  work.caller = [at] { (void)Memory::get().free(at); };
  Clocks::get().add(stream_of(stream), std::move(work), description().profile.launch_host);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (device < 0 || device >= Runtime::get().visible()) return result(cudaErrorInvalidDevice);
  *pool = pool_handle(device);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const auto device = device_of_pool(pool);
  if (!device) return result(cudaErrorInvalidValue);
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    std::uint64_t threshold = 0;
    std::memcpy(&threshold, value, sizeof threshold);
    Memory::get().set_threshold(*device, threshold);
  } else if (attribute == cudaMemPoolAttrReservedMemHigh) {
    Memory::get().reset_most_reserved(*device);
  } else if (attribute == cudaMemPoolAttrUsedMemHigh) {
    Memory::get().reset_most_used(*device);
  }
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const auto device = device_of_pool(pool);
  if (!device) return result(cudaErrorInvalidValue);
  if (const auto bytes = value_of(Memory::get().pool(*device), attribute))
    std::memcpy(value, &*bytes, sizeof *bytes);
  else
    std::memset(value, 0, sizeof(int));
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep) {
  const auto device = device_of_pool(pool);
  if (!device) return result(cudaErrorInvalidValue);
  Memory::get().trim(*device, keep);
  return cudaSuccess;
}
