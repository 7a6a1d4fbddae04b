#include "worker/phantom/runtime.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "worker/phantom/counters.h"
#include "worker/phantom/faults.h"
#include "worker/phantom/node.h"

namespace sweep::phantom {
namespace {

thread_local int this_ordinal = 0;
thread_local cudaError_t last_error = cudaSuccess;
std::atomic<std::uint32_t> contexts{0};

std::string hex(const std::string& bytes) {
  std::string out;
  for (const unsigned char byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

// The device that one item of CUDA_VISIBLE_DEVICES names (a number, or GPU-UUID, its beginning is enough).
int named(const std::string& item) {
  const int gpus = description().gpus;
  if (item.rfind("GPU-", 0) != 0) {
    const bool number = !item.empty() && item.find_first_not_of("0123456789") == std::string::npos;
    const int device = number ? std::atoi(item.c_str()) : -1;
    return device < gpus ? device : -1;
  }
  std::string wanted;
  std::copy_if(item.begin() + 4, item.end(), std::back_inserter(wanted), [](char c) { return c != '-'; });
  for (int device = 0; device < gpus; ++device)
    if (hex(uuid_of(device)).rfind(wanted, 0) == 0) return device;
  return -1;
}

// A process that forks after the first context leaves its child without CUDA, as the driver does.
void forked() {
  if (contexts == 0) return;
  Runtime::get().stick(cudaErrorInitializationError);
  if (Node* node = Node::open()) node->after_fork_in_child();
  counters().device = -1;
}

}  // namespace

Runtime& Runtime::get() {
  static auto* runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() {
  ::pthread_atfork(nullptr, nullptr, forked);
  const char* listed = std::getenv("CUDA_VISIBLE_DEVICES");
  if (listed == nullptr) {
    for (int device = 0; device < description().gpus; ++device) devices_.push_back(device);
    return;
  }
  std::istringstream items(listed);
  for (std::string item; std::getline(items, item, ',');) {
    const int device = named(item);
    if (device < 0) break;  // CUDA does so too: devices before the first unknown one count
    devices_.push_back(device);
  }
}

int Runtime::ordinal_of(int device) const {
  const auto found = std::find(devices_.begin(), devices_.end(), device);
  return found == devices_.end() ? -1 : static_cast<int>(found - devices_.begin());
}

cudaError_t Runtime::begin() {
  if (const int stuck = stuck_) return result(static_cast<cudaError_t>(stuck));
  return devices_.empty() ? result(cudaErrorNoDevice) : cudaSuccess;
}

int current_ordinal() {
  return this_ordinal;
}

int current_device() {
  const int device = Runtime::get().device_of(this_ordinal);
  if ((contexts.fetch_or(1u << device) & (1u << device)) == 0) {
    if (Node* node = Node::open()) node->retain_context(device);
    counters().held_bytes += description().device.context_bytes;
    counters().peak_held_bytes = std::max<std::uint64_t>(counters().peak_held_bytes, counters().held_bytes);
    if (counters().device < 0) {
      counters().device = device;
      write_counters();  // records that this process used a phantom, even if it is killed later
    }
  }
  return device;
}

bool has_context(int device) {
  return (contexts & (1u << device)) != 0;
}

bool set_current(int ordinal) {
  if (ordinal < 0 || ordinal >= Runtime::get().visible()) return false;
  this_ordinal = ordinal;
  return true;
}

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

Stream& stream_of(cudaStream_t stream) {
  const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  return is_default ? *Clocks::get().default_of(current_device()) : *reinterpret_cast<Stream*>(stream);
}

std::string uuid_of(int device) {
  const std::size_t node = std::hash<std::string>()(description().node);
  std::string out(16, '\0');
  for (int i = 0; i < 8; ++i) out[static_cast<std::size_t>(i)] = static_cast<char>(node >> (8 * i));
  for (std::size_t i = 8; i < 15; ++i) out[i] = static_cast<char>(i * 17);
  out[15] = static_cast<char>(device);
  out[0] = static_cast<char>(0x50 + device);
  return out;
}

std::string pci_id_of(int device) {
  char out[32];
  std::snprintf(out, sizeof out, "0000:%02X:00.0", device + 1);
  return out;
}

namespace {

// The answer of every later call once a GPU has reported this Xid; success: the program goes on.
cudaError_t after_xid(std::uint64_t code) {
  switch (code) {
    case 48:
    case 94:
    case 95:
    case 140:
      return cudaErrorECCUncorrectable;
    case 13:
    case 31:
      return cudaErrorIllegalAddress;
    case 74:
      return cudaErrorNvlinkUncorrectable;
    case 43:
    case 62:
    case 64:
    case 79:
    case 119:
    case 120:
      return cudaErrorLaunchFailure;
    default:
      return cudaSuccess;
  }
}

}  // namespace

cudaError_t run_kernel(Stream& stream, const KernelTime& time) {
  ++counters().launches;
  counters().kernel_ns += time.lasts;
  if (time.source == Source::kTable) counters().tabled_ns += time.lasts;
  if (time.source == Source::kScaled) counters().scaled_ns += time.lasts;
  Ns lasts = time.lasts;
  Faults& faults = Faults::get();
  if (faults.any()) {
    if (faults.triggered(Fault::kLaunchFailure, stream.device) != nullptr)
      Runtime::get().stick(cudaErrorIllegalAddress);
    if (const FaultRule* rule = faults.triggered(Fault::kXid, stream.device)) {
      if (Node* node = Node::open()) node->raise_xid(stream.device, rule->code);
      say("NVRM: Xid (PCI:" + pci_id_of(stream.device) + "): " + std::to_string(rule->code));
      if (const auto error = after_xid(rule->code)) Runtime::get().stick(error);
    }
    lasts = static_cast<Ns>(static_cast<double>(lasts) * faults.factor(Fault::kSlowGpu, stream.device));
  }
  Work work;
  work.lasts = lasts;
  Clocks::get().add(stream, std::move(work), description().profile.launch_host);
  return cudaSuccess;
}

Ns copy_time(std::size_t bytes, cudaMemcpyKind kind) {
  const auto& [device, profile, gpus, node] = description();
  const bool within = kind == cudaMemcpyDeviceToDevice;
  const double rate = within ? device.memory_bandwidth / 2 : profile.pcie_bandwidth;
  return profile.copy_latency + std::llround(static_cast<double>(bytes) / rate * 1e9);
}

}  // namespace sweep::phantom

using namespace sweep::phantom;

PHANTOM_API cudaError_t cudaGetLastError() {
  const cudaError_t out = last_error;
  last_error = cudaSuccess;
  if (const auto stuck = Runtime::get().begin(); stuck != cudaErrorNoDevice && stuck != cudaSuccess)
    return stuck;
  return out;
}

PHANTOM_API cudaError_t cudaPeekAtLastError() {
  return last_error;
}

namespace {

struct ErrorWords {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorWords kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "unknown error"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorNvlinkUncorrectable, "cudaErrorNvlinkUncorrectable",
     "uncorrectable NVLink error detected during the execution"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
};

const ErrorWords& words_of(cudaError_t error) {
  static constexpr ErrorWords kOther{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  const auto found = std::ranges::find(kErrors, error, &ErrorWords::error);
  return found == std::end(kErrors) ? kOther : *found;
}

}  // namespace

PHANTOM_API const char* cudaGetErrorName(cudaError_t error) {
  return words_of(error).name;
}

PHANTOM_API const char* cudaGetErrorString(cudaError_t error) {
  return words_of(error).text;
}
