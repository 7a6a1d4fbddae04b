// The CUDA runtime's questions about devices.
#include <cstdio>
#include <cstring>
#include <map>

#include "worker/phantom/node.h"
#include "worker/phantom/python.h"
#include "worker/phantom/runtime.h"

using namespace sweep::phantom;

namespace {

struct Limits {
  int shared_per_block = 49152, registers = 65536, warp = 32, threads = 1024;
  int shared_per_multiprocessor = 233472, shared_optin = 232448, l2 = 50 << 20;
  int threads_per_multiprocessor = 2048, blocks_per_multiprocessor = 32;
};

Limits limits_of(const Device& device) {
  Limits out;
  const int capability = device.major * 10 + device.minor;
  if (capability >= 90) return out;
  out.shared_per_multiprocessor = capability == 80   ? 167936
                                  : capability >= 86 ? 102400
                                  : capability == 75 ? 65536
                                                     : 98304;
  out.shared_optin = capability >= 80 ? out.shared_per_multiprocessor - 1024 : out.shared_per_multiprocessor;
  out.l2 = capability >= 80 ? 40 << 20 : 6 << 20;
  out.threads_per_multiprocessor = capability >= 86 ? 1536 : capability == 75 ? 1024 : 2048;
  out.blocks_per_multiprocessor = capability >= 86 || capability == 75 ? 16 : 32;
  return out;
}

// Programs reckon the memory's bandwidth as this width times twice the clock: the clock is made for it.
constexpr int kMemoryBusBits = 5120;

int memory_clock_khz(const Device& device) {
  return static_cast<int>(device.memory_bandwidth / (2 * kMemoryBusBits / 8) / 1e3);
}

int attribute_of(cudaDeviceAttr attribute, int device) {
  const Device& d = description().device;
  const Limits l = limits_of(d);
  const std::map<cudaDeviceAttr, int> values = {
      {cudaDevAttrMaxThreadsPerBlock, l.threads},
      {cudaDevAttrMaxBlockDimX, l.threads},
      {cudaDevAttrMaxBlockDimY, l.threads},
      {cudaDevAttrMaxBlockDimZ, 64},
      {cudaDevAttrMaxGridDimX, 2147483647},
      {cudaDevAttrMaxGridDimY, 65535},
      {cudaDevAttrMaxGridDimZ, 65535},
      {cudaDevAttrMaxSharedMemoryPerBlock, l.shared_per_block},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, l.shared_optin},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, l.shared_per_multiprocessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
      {cudaDevAttrTotalConstantMemory, 65536},
      {cudaDevAttrWarpSize, l.warp},
      {cudaDevAttrMaxRegistersPerBlock, l.registers},
      {cudaDevAttrMaxRegistersPerMultiprocessor, l.registers},
      {cudaDevAttrMultiProcessorCount, d.multiprocessors},
      {cudaDevAttrMaxThreadsPerMultiProcessor, l.threads_per_multiprocessor},
      {cudaDevAttrMaxBlocksPerMultiprocessor, l.blocks_per_multiprocessor},
      {cudaDevAttrComputeCapabilityMajor, d.major},
      {cudaDevAttrComputeCapabilityMinor, d.minor},
      {cudaDevAttrL2CacheSize, l.l2},
      {cudaDevAttrMemoryClockRate, memory_clock_khz(d)},
      {cudaDevAttrGlobalMemoryBusWidth, kMemoryBusBits},
      {cudaDevAttrPciBusId, device + 1},
      {cudaDevAttrAsyncEngineCount, 3},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrMemoryPoolsSupported, 1},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrCooperativeLaunch, 1}};
  const auto found = values.find(attribute);
  return found == values.end() ? 0 : found->second;
}

void fill_limits(cudaDeviceProp& p) {
  const Limits l = limits_of(description().device);
  p.sharedMemPerBlock = static_cast<std::size_t>(l.shared_per_block);
  p.regsPerBlock = p.regsPerMultiprocessor = l.registers;
  p.warpSize = l.warp;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = l.threads;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.l2CacheSize = l.l2;
  p.maxThreadsPerMultiProcessor = l.threads_per_multiprocessor;
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(l.shared_per_multiprocessor);
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(l.shared_optin);
  p.reservedSharedMemPerBlock = 1024;
  p.maxBlocksPerMultiProcessor = l.blocks_per_multiprocessor;
}

}  // namespace

PHANTOM_API cudaError_t cudaGetDeviceCount(int* count) {
  teach_python();  // PyTorch asks before anything else
  *count = Runtime::get().visible();
  return *count > 0 ? cudaSuccess : result(cudaErrorNoDevice);
}

PHANTOM_API cudaError_t cudaSetDevice(int device) {
  if (const auto error = Runtime::get().begin()) return error;
  if (!set_current(device)) return result(cudaErrorInvalidDevice);
  (void)current_device();
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGetDevice(int* device) {
  *device = current_ordinal();
  return Runtime::get().visible() > 0 ? cudaSuccess : result(cudaErrorNoDevice);
}

PHANTOM_API cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int ordinal) {
  if (ordinal < 0 || ordinal >= Runtime::get().visible()) return result(cudaErrorInvalidDevice);
  const int device = Runtime::get().device_of(ordinal);
  const Device& d = description().device;
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "%s", d.name.c_str());
  std::memcpy(&p->uuid, uuid_of(device).data(), sizeof p->uuid);
  p->totalGlobalMem = d.memory_bytes;
  p->major = d.major;
  p->minor = d.minor;
  p->multiProcessorCount = d.multiprocessors;
  p->pciBusID = device + 1;
  p->memPitch = 2147483647;
  p->totalConstMem = 65536;
  p->textureAlignment = 512;
  p->memoryBusWidth = kMemoryBusBits;
  p->asyncEngineCount = 3;
  p->unifiedAddressing = p->managedMemory = p->canMapHostMemory = p->concurrentKernels = 1;
  p->streamPrioritiesSupported = p->cooperativeLaunch = p->memoryPoolsSupported = 1;
  fill_limits(*p);
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= Runtime::get().visible()) return result(cudaErrorInvalidDevice);
  *value = attribute_of(attribute, Runtime::get().device_of(device));
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  if (device < 0 || device >= Runtime::get().visible()) return result(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(size), "%s",
                pci_id_of(Runtime::get().device_of(device)).c_str());
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device == peer ? 0 : 1;
  return cudaSuccess;
}

PHANTOM_API cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return Runtime::get().begin();
}

PHANTOM_API cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const auto error = Runtime::get().begin()) return error;
  Node* node = Node::open();
  if (node == nullptr) return result(cudaErrorInitializationError);
  *total = description().device.memory_bytes;
  const std::uint64_t used = node->use(current_device()).used;
  *free = used < *total ? *total - used : 0;
  return cudaSuccess;
}
