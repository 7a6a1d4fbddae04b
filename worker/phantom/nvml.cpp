// NVML, out of the node's shared file. nvml.h belongs to the toolkit: its structs are declared here.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "worker/phantom/node.h"
#include "worker/phantom/runtime.h"

using namespace sweep::phantom;

namespace {

enum NvmlResult : int {
  kNvmlSuccess = 0,
  kNvmlInvalidArgument = 2,
  kNvmlNotSupported = 3,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlTimeout = 10,
  kNvmlNoFile = 9
};

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct NvmlUtilisation {
  unsigned gpu, memory;
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
struct NvmlProcessV1 {
  unsigned pid;
  unsigned long long bytes;
};
struct NvmlPci {
  char legacy[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char id[32];
};
struct NvmlEvent {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

constexpr unsigned long long kXidEvent = 8;
constexpr unsigned kSmClock = 1;  // NVML_CLOCK_SM; 0 is that of graphics, which is the same

// Handles are numbers from 1 on.
void* nvml_handle(int device) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(device) + 1);
}

int device_of_handle(void* handle) {
  const auto device = static_cast<int>(reinterpret_cast<std::intptr_t>(handle)) - 1;
  return device >= 0 && device < description().gpus ? device : -1;
}

int write_text(const std::string& text, char* out, unsigned size) {
  if (size <= text.size()) return kNvmlInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kNvmlSuccess;
}

std::string uuid_text(int device) {
  const std::string bytes = uuid_of(device);
  std::string out = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(bytes[i]));
    out += hex;
  }
  return out;
}

// The clock at which the multiprocessors reach the fp32 peak of the description: each has 64 units where it
// is of compute capability 7 or 8.0, else 128, and a unit does two operations a cycle. 0: the description has
// no such peak.
unsigned sm_clock_mhz() {
  const Device& d = description().device;
  const auto peak = d.peak_flops.find("fp32");
  if (peak == d.peak_flops.end()) return 0;
  const double units = d.major == 7 || (d.major == 8 && d.minor == 0) ? 64 : 128;
  return static_cast<unsigned>(peak->second / (d.multiprocessors * units * 2) / 1e6);
}

// Per cent of the modelled time since this process asked last that the device was busy.
unsigned busy_percent(int device) {
  static std::array<std::pair<std::int64_t, std::int64_t>, kMostDevices> last{};
  Node* node = Node::open();
  if (node == nullptr) return 0;
  const DeviceUse use = node->use(device);
  auto& [busy, clock] = last[static_cast<std::size_t>(device)];
  const auto busy_since = use.busy - busy, clock_since = use.clock - clock;
  busy = use.busy;
  clock = use.clock;
  if (clock_since <= 0) return 0;
  return static_cast<unsigned>(
      std::min<std::int64_t>(100, std::max<std::int64_t>(0, 100 * busy_since / clock_since)));
}

struct EventSet {
  std::array<std::uint64_t, kMostDevices> seen{};
  std::uint32_t devices = 0;
};

}  // namespace

PHANTOM_API int nvmlInit_v2() {
  return description().gpus > 0 && Node::open() != nullptr ? kNvmlSuccess : kNvmlNoFile;
}

PHANTOM_API int nvmlInitWithFlags(unsigned) {
  return nvmlInit_v2();
}

PHANTOM_API const char* nvmlErrorString(int error) {
  return error == kNvmlSuccess ? "Success" : error == kNvmlNotSupported ? "Not Supported" : "Unknown Error";
}

PHANTOM_API int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return write_text("580.0.phantom", text, size);
}

PHANTOM_API int nvmlSystemGetNVMLVersion(char* text, unsigned size) {
  return write_text("13.580.0.phantom", text, size);
}

PHANTOM_API int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = CUDART_VERSION;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(description().gpus);
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= static_cast<unsigned>(description().gpus)) return kNvmlInvalidArgument;
  *device = nvml_handle(static_cast<int>(index));
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (int i = 0; i < description().gpus; ++i)
    if (uuid_text(i) == uuid) return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(i), device);
  return kNvmlNotFound;
}

PHANTOM_API int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(id, "%x:%x:", &domain, &bus) != 2 || bus == 0) return kNvmlNotFound;
  return nvmlDeviceGetHandleByIndex_v2(bus - 1, device) == kNvmlSuccess ? kNvmlSuccess : kNvmlNotFound;
}

PHANTOM_API int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = static_cast<unsigned>(device_of_handle(device));
  return device_of_handle(device) < 0 ? kNvmlInvalidArgument : kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetName(void*, char* text, unsigned size) {
  return write_text(description().device.name, text, size);
}

PHANTOM_API int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  if (device_of_handle(device) < 0) return kNvmlInvalidArgument;
  return write_text(uuid_text(device_of_handle(device)), text, size);
}

PHANTOM_API int nvmlDeviceGetPciInfo_v3(void* device, NvmlPci* out) {
  std::memset(out, 0, sizeof *out);
  out->bus = static_cast<unsigned>(device_of_handle(device) + 1);
  std::snprintf(out->id, sizeof out->id, "0000%s", pci_id_of(device_of_handle(device)).c_str());
  std::snprintf(out->legacy, sizeof out->legacy, "%s", pci_id_of(device_of_handle(device)).c_str());
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = description().device.major;
  *minor = description().device.minor;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetMemoryInfo(void* device, NvmlMemory* out) {
  if (device_of_handle(device) < 0) return kNvmlInvalidArgument;
  out->total = description().device.memory_bytes;
  out->used = Node::open()->use(device_of_handle(device)).used;
  out->free = out->total - out->used;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetMemoryInfo_v2(void* device, NvmlMemoryV2* out) {
  NvmlMemory plain{};
  const int result = nvmlDeviceGetMemoryInfo(device, &plain);
  out->total = plain.total;
  out->free = plain.free;
  out->used = plain.used;
  out->reserved = 0;
  return result;
}

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, NvmlProcess* out) {
  if (device_of_handle(device) < 0) return kNvmlInvalidArgument;
  const auto processes = Node::open()->use(device_of_handle(device)).processes;
  const bool fits = processes.size() <= *count;
  *count = static_cast<unsigned>(processes.size());
  if (!fits) return kNvmlInsufficientSize;
  for (const auto& process : processes)
    *out++ = {static_cast<unsigned>(process.pid), process.bytes, ~0u, ~0u};
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, NvmlProcess* out) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
}

PHANTOM_API int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, NvmlProcessV1* out) {
  std::vector<NvmlProcess> newer(*count);
  const int result = nvmlDeviceGetComputeRunningProcesses_v3(device, count, newer.data());
  for (unsigned i = 0; result == kNvmlSuccess && i < *count; ++i) out[i] = {newer[i].pid, newer[i].bytes};
  return result;
}

PHANTOM_API int nvmlDeviceGetUtilizationRates(void* device, NvmlUtilisation* out) {
  if (device_of_handle(device) < 0) return kNvmlInvalidArgument;
  out->gpu = out->memory = busy_percent(device_of_handle(device));
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetClockInfo(void*, unsigned kind, unsigned* mhz) {
  if (kind > kSmClock || sm_clock_mhz() == 0) return kNvmlNotSupported;
  *mhz = sm_clock_mhz();
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetMaxClockInfo(void* device, unsigned kind, unsigned* mhz) {
  return nvmlDeviceGetClockInfo(device, kind, mhz);
}

PHANTOM_API int nvmlDeviceGetTemperature(void*, unsigned, unsigned* celsius) {
  *celsius = 40;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}

// An Xid of the double-bit kind counts as an uncorrected error; there are no others.
PHANTOM_API int nvmlDeviceGetTotalEccErrors(void* device, unsigned, unsigned, unsigned long long* errors) {
  if (device_of_handle(device) < 0) return kNvmlInvalidArgument;
  *errors = Node::open()->xid(device_of_handle(device)) == 48
                ? Node::open()->xid_count(device_of_handle(device))
                : 0;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceGetSupportedEventTypes(void*, unsigned long long* types) {
  *types = kXidEvent;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlEventSetCreate(void** set) {
  *set = new EventSet;
  return kNvmlSuccess;
}

PHANTOM_API int nvmlEventSetFree(void* set) {
  delete static_cast<EventSet*>(set);
  return kNvmlSuccess;
}

PHANTOM_API int nvmlDeviceRegisterEvents(void* device, unsigned long long, void* set) {
  const int number = device_of_handle(device);
  if (number < 0) return kNvmlInvalidArgument;
  auto& events = *static_cast<EventSet*>(set);
  events.devices |= 1u << number;
  events.seen[static_cast<std::size_t>(number)] = Node::open()->xid_count(number);
  return kNvmlSuccess;
}

// Answers at once: an Xid that has come since, or a timeout.
PHANTOM_API int nvmlEventSetWait_v2(void* set, NvmlEvent* out, unsigned) {
  auto& events = *static_cast<EventSet*>(set);
  for (int device = 0; device < description().gpus; ++device) {
    auto& seen = events.seen[static_cast<std::size_t>(device)];
    if ((events.devices & (1u << device)) == 0 || Node::open()->xid_count(device) == seen) continue;
    ++seen;
    *out = {nvml_handle(device), kXidEvent, Node::open()->xid(device), ~0u, ~0u};
    return kNvmlSuccess;
  }
  return kNvmlTimeout;
}

PHANTOM_API int nvmlDeviceGetP2PStatus(void*, void*, int, int* status) {
  *status = 0;  // NVML_P2P_STATUS_OK
  return kNvmlSuccess;
}
