// Runtime: what the CUDA runtime's functions share: the thread's device, errors (one that sticks fails every
// later call), kernels as work of a stream. Devices inside the library are the node's; numbers that a program
// sees are those of CUDA_VISIBLE_DEVICES.
#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <vector>

#include "worker/phantom/clock.h"
#include "worker/phantom/export.h"
#include "worker/phantom/kernel_table.h"

namespace sweep::phantom {

class Runtime {
 public:
  static Runtime& get();
  // cudaSuccess, or why no call can succeed any more.
  cudaError_t begin();
  void stick(cudaError_t error) { stuck_ = error; }
  int visible() const { return static_cast<int>(devices_.size()); }
  int device_of(int ordinal) const { return devices_[static_cast<std::size_t>(ordinal)]; }
  int ordinal_of(int device) const;

 private:
  Runtime();
  std::vector<int> devices_;
  std::atomic<int> stuck_{cudaSuccess};
};

int current_ordinal();
int current_device();          // its number on the node; makes the context on it
bool has_context(int device);  // `device` is its number on the node
bool set_current(int ordinal);
cudaError_t result(cudaError_t error);  // remembered for cudaGetLastError, where it is one
Stream& stream_of(cudaStream_t stream);
std::string uuid_of(int device);    // 16 bytes
std::string pci_id_of(int device);  // "0000:1B:00.0"

struct EventState {
  MarkPtr mark;
};

// A kernel of the modelled length on the stream: it is counted, and faults apply to it.
cudaError_t run_kernel(Stream& stream, const KernelTime& time);
Ns copy_time(std::size_t bytes, cudaMemcpyKind kind);
constexpr std::size_t kMovedBytes = 64
                                    << 10;  // the most that is really moved; larger contents stay as they are

}  // namespace sweep::phantom
