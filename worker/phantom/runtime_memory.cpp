// The CUDA runtime's memory: allocation, copies, pinned memory. At most kMovedBytes are really copied.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "worker/phantom/counters.h"
#include "worker/phantom/launch_log.h"
#include "worker/phantom/memory.h"
#include "worker/phantom/node.h"

using namespace sweep::phantom;

namespace {

constexpr std::size_t kHostPage = 4096;
// Up to here pinned memory is true; larger copies are not carried out.
constexpr std::size_t kTrue = std::size_t{1} << 20;
// Size of the file that large pieces show; each is a mapping, and a process may have 65,530.
constexpr std::size_t kShown = std::size_t{16} << 20;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kHostPage - 1) / kHostPage * kHostPage;
}

// The file that large pieces show; below 0: there is none.
int shown_file() {
  static const int file = [] {
    const int made = ::memfd_create("sweep-phantom-pinned", MFD_CLOEXEC);
    return made >= 0 && ::ftruncate(made, static_cast<off_t>(kShown)) == 0 ? made : -1;
  }();
  return file;
}

// Pinned host memory; nullptr: the system refuses. A large piece has addresses but no content of its own: all
// of it shows the same few megabytes, so that the offloaded states of a rehearsal need no memory of this
// machine. Small pieces are true memory.
void* make_pinned(std::size_t bytes) {
  if (bytes <= kTrue) return std::aligned_alloc(kHostPage, whole_pages(std::max<std::size_t>(bytes, 1)));
  const int file = shown_file();
  const std::size_t all = whole_pages(bytes);
  void* range = file < 0
                    ? MAP_FAILED
                    : ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  for (std::size_t at = 0; at < all; at += kShown) {
    void* piece = ::mmap(static_cast<char*>(range) + at, std::min(kShown, all - at), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, file, 0);
    if (piece == MAP_FAILED) return ::munmap(range, all), nullptr;
  }
  return range;
}

// Frees what make_pinned gave, with the same size.
void drop_pinned(void* at, std::size_t bytes) {
  if (bytes <= kTrue)
    std::free(at);
  else
    ::munmap(at, whole_pages(bytes));
}

bool on_device(const void* at) {
  const auto range = Memory::get().find(at);
  return range && range->device >= 0;
}

cudaMemcpyKind direction(void* to, const void* from, cudaMemcpyKind said) {
  if (said != cudaMemcpyDefault) return said;
  if (on_device(to)) return on_device(from) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return on_device(from) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

// A copy as work of the stream. What comes from the host is read at once: a program may change it afterwards.
void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Stream& stream) {
  ++counters().memcpys;
  counters().memcpy_bytes += bytes;
  kind = direction(to, from, kind);
  Work work;
  work.lasts = copy_time(bytes, kind);
  if (bytes > 0 && bytes <= kMovedBytes) {
    if (kind == cudaMemcpyHostToDevice) {
      const auto* begin = static_cast<const char*>(from);
      work.act = [to, staged = std::vector<char>(begin, begin + bytes)] {
        std::memcpy(to, staged.data(), staged.size());
      };
    } else {
      work.act = [=] { std::memmove(to, from, bytes); };
    }
  }
  Clocks::get().add(stream, std::move(work), description().profile.copy_host);
  const bool blocks = kind == cudaMemcpyDeviceToHost && !stream.capture && !Memory::get().find(to);
  if (blocks) Clocks::get().synchronize(stream);  // pageable memory is copied before the call returns
}

cudaError_t fill(void* at, int value, std::size_t bytes, Stream& stream) {
  if (const auto error = Runtime::get().begin()) return error;
  ++counters().memsets;
  Work work;
  work.lasts = copy_time(bytes, cudaMemcpyDeviceToDevice);
  if (bytes <= kMovedBytes) work.act = [=] { std::memset(at, value, bytes); };
  Clocks::get().add(stream, std::move(work), description().profile.launch_host);
  return cudaSuccess;
}

}  // namespace

PHANTOM_API cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  if (const auto error = Runtime::get().begin()) return error;
  const cudaError_t given = Memory::get().allocate(at, bytes, current_device());
  if (given == cudaSuccess && bytes > 0) log_block(*at, static_cast<double>(bytes));
  return result(given);
}

PHANTOM_API cudaError_t cudaFree(void* at) {
  if (const auto error = Runtime::get().begin()) return error;
  if (at == nullptr) {
    (void)current_device();
    return cudaSuccess;
  }
  Clocks::get().synchronize_device(current_device());  // cudaFree waits for the device
  log_block(at, 0);
  return result(Memory::get().free(at));
}

PHANTOM_API cudaError_t cudaMallocManaged(void** at, std::size_t bytes, unsigned) {
  if (const auto error = Runtime::get().begin()) return error;
  return result(Memory::get().allocate(at, bytes, current_device(), MemoryKind::kManaged));
}

PHANTOM_API cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned) {
  if (const auto error = Runtime::get().begin()) return error;
  *at = make_pinned(bytes);
  if (*at == nullptr) return result(cudaErrorMemoryAllocation);
  Clocks::get().spend(description().profile.malloc_host);
  Memory::get().pin(*at, bytes);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMallocHost(void** at, std::size_t bytes) {
  return cudaHostAlloc(at, bytes, 0);
}

PHANTOM_API cudaError_t cudaFreeHost(void* at) {
  if (at == nullptr) return cudaSuccess;
  const auto bytes = Memory::get().unpin(at);
  if (!bytes) return result(cudaErrorInvalidValue);
  drop_pinned(at, *bytes);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned) {
  if (const auto error = Runtime::get().begin()) return error;
  if (Memory::get().find(at)) return result(cudaErrorHostMemoryAlreadyRegistered);
  Memory::get().pin(at, bytes);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaHostUnregister(void* at) {
  return Memory::get().unpin(at) ? cudaSuccess : result(cudaErrorHostMemoryNotRegistered);
}

PHANTOM_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const auto error = Runtime::get().begin()) return error;
  Stream& stream = stream_of(nullptr);
  copy(to, from, bytes, kind, stream);
  Clocks::get().synchronize(stream);
  ++counters().host_syncs;
  return Runtime::get().begin();
}

PHANTOM_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                        cudaStream_t stream) {
  if (const auto error = Runtime::get().begin()) return error;
  copy(to, from, bytes, kind, stream_of(stream));
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                            cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

PHANTOM_API cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                          std::size_t from_pitch, std::size_t width, std::size_t height,
                                          cudaMemcpyKind kind, cudaStream_t stream) {
  if (const auto error = Runtime::get().begin()) return error;
  ++counters().memcpys;
  counters().memcpy_bytes += width * height;
  Work work;
  work.lasts = copy_time(width * height, direction(to, from, kind));
  if (width * height <= kMovedBytes)
    work.act = [=] {
      for (std::size_t row = 0; row < height; ++row)
        std::memmove(static_cast<char*>(to) + row * to_pitch,
                     static_cast<const char*>(from) + row * from_pitch, width);
    };
  Clocks::get().add(stream_of(stream), std::move(work), description().profile.copy_host);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t,
                                           cudaMemcpyKind) {
  return Runtime::get().begin();
}

PHANTOM_API cudaError_t cudaGetSymbolAddress(void** at, const void*) {
  static char nothing[1 << 16];
  *at = nothing;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaMemset(void* at, int value, std::size_t bytes) {
  return fill(at, value, bytes, stream_of(nullptr));
}

PHANTOM_API cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  return fill(at, value, bytes, stream_of(stream));
}

PHANTOM_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* at) {
  std::memset(out, 0, sizeof *out);
  const auto range = Memory::get().find(at);
  out->type = !range                                ? cudaMemoryTypeUnregistered
              : range->kind == MemoryKind::kManaged ? cudaMemoryTypeManaged
              : range->device < 0                   ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
  out->device = range && range->device >= 0 ? Runtime::get().ordinal_of(range->device) : 0;
  if (range) out->devicePointer = const_cast<void*>(at);
  if (!range || range->device < 0) out->hostPointer = const_cast<void*>(at);
  return cudaSuccess;
}

// Handles to another process's memory: not offered, and LibTorch is told so.
PHANTOM_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  refuse("cudaIpcGetMemHandle");
  return result(cudaErrorNotSupported);
}

PHANTOM_API cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  refuse("cudaIpcOpenMemHandle");
  return result(cudaErrorNotSupported);
}

PHANTOM_API cudaError_t cudaIpcCloseMemHandle(void*) {
  return result(cudaErrorNotSupported);
}

PHANTOM_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  refuse("cudaIpcGetEventHandle");
  return result(cudaErrorNotSupported);
}

PHANTOM_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  refuse("cudaIpcOpenEventHandle");
  return result(cudaErrorNotSupported);
}
