// The driver's memory: virtual addresses and physical memory apart, as the allocator's expandable segments
// use them. A mapping has its own content: two mappings of one handle do not share it.
#include <cuda.h>
#include <sys/mman.h>

#include <cstring>

#include "worker/phantom/memory.h"

using namespace sweep::phantom;

namespace {

struct Physical {  // behind CUmemGenericAllocationHandle
  std::size_t bytes;
  int device;
  std::atomic<int> holders;  // the handle itself, and each mapping
};

Physical& physical_of(CUmemGenericAllocationHandle handle) {
  return *reinterpret_cast<Physical*>(handle);
}

void let_go(CUmemGenericAllocationHandle handle) {
  Physical& physical = physical_of(handle);
  if (--physical.holders > 0) return;
  Memory::get().release(physical.bytes, physical.device);
  delete &physical;
}

std::mutex mapped_mutex;
std::map<CUdeviceptr, std::pair<std::size_t, CUmemGenericAllocationHandle>> mapped;

void* address(CUdeviceptr at) {
  return reinterpret_cast<void*>(at);
}

}  // namespace

PHANTOM_API CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                                   CUmemAllocationGranularity_flags) {
  *bytes = 2 << 20;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemAddressReserve(CUdeviceptr* at, std::size_t bytes, std::size_t, CUdeviceptr,
                                         unsigned long long) {
  void* made = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = reinterpret_cast<CUdeviceptr>(made);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemAddressFree(CUdeviceptr at, std::size_t bytes) {
  ::munmap(address(at), bytes);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                                 const CUmemAllocationProp* prop, unsigned long long) {
  if (const auto error = Runtime::get().begin()) return static_cast<CUresult>(error);
  const int device = Runtime::get().device_of(prop->location.id);
  if (Memory::get().charge(bytes, device) != cudaSuccess) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Physical{bytes, device, 1});
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  let_go(handle);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t,
                              CUmemGenericAllocationHandle handle, unsigned long long) {
  if (::mprotect(address(at), bytes, PROT_READ | PROT_WRITE) != 0) return CUDA_ERROR_INVALID_VALUE;
  ++physical_of(handle).holders;
  Memory::get().map(address(at), bytes, physical_of(handle).device);
  const std::lock_guard lock(mapped_mutex);
  mapped[at] = {bytes, handle};
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  Memory::get().unmap(address(at), bytes);
  ::madvise(address(at), bytes, MADV_DONTNEED);
  ::mprotect(address(at), bytes, PROT_NONE);
  const std::lock_guard lock(mapped_mutex);
  const auto end = mapped.lower_bound(at + bytes);
  for (auto i = mapped.lower_bound(at); i != end; i = mapped.erase(i)) let_go(i->second.second);
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr at) {
  const auto range = Memory::get().find(address(at));
  if (!range) return CUDA_ERROR_NOT_FOUND;
  if (begin != nullptr) *begin = reinterpret_cast<CUdeviceptr>(range->begin);
  if (bytes != nullptr) *bytes = range->bytes;
  return CUDA_SUCCESS;
}

PHANTOM_API CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr at) {
  const auto range = Memory::get().find(address(at));
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
      const CUmemorytype type = range->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      std::memcpy(value, &type, sizeof type);
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
      const int ordinal = range->device < 0 ? 0 : Runtime::get().ordinal_of(range->device);
      std::memcpy(value, &ordinal, sizeof ordinal);
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      std::memcpy(value, &at, sizeof at);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

PHANTOM_API CUresult cuMemAlloc_v2(CUdeviceptr* at, std::size_t bytes) {
  void* made = nullptr;
  const auto error = cudaMalloc(&made, bytes);
  *at = reinterpret_cast<CUdeviceptr>(made);
  return static_cast<CUresult>(error);
}

PHANTOM_API CUresult cuMemFree_v2(CUdeviceptr at) {
  return static_cast<CUresult>(cudaFree(address(at)));
}

PHANTOM_API CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return static_cast<CUresult>(cudaMemGetInfo(free, total));
}

PHANTOM_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return static_cast<CUresult>(cudaMemcpy(address(to), from, bytes, cudaMemcpyHostToDevice));
}

PHANTOM_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return static_cast<CUresult>(cudaMemcpy(to, address(from), bytes, cudaMemcpyDeviceToHost));
}

PHANTOM_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                          CUstream stream) {
  return static_cast<CUresult>(
      cudaMemcpyAsync(address(to), address(from), bytes, cudaMemcpyDeviceToDevice, stream));
}

PHANTOM_API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t bytes,
                                     CUstream stream) {
  return static_cast<CUresult>(cudaMemsetAsync(address(at), value, bytes, stream));
}

PHANTOM_API CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, std::size_t words, CUstream stream) {
  if (value == 0) return cuMemsetD8Async(at, 0, words * 4, stream);
  if (const auto error = Runtime::get().begin()) return static_cast<CUresult>(error);
  Work work;
  work.lasts = copy_time(words * 4, cudaMemcpyDeviceToDevice);
  if (words * 4 <= kMovedBytes)
    work.act = [=] { std::fill_n(static_cast<unsigned*>(address(at)), words, value); };
  Clocks::get().add(stream_of(stream), std::move(work), description().profile.launch_host);
  return CUDA_SUCCESS;
}
