// The structures of NVML's C interface that the agent reads, as nvml.h declares them.
#pragma once

namespace sweep::agent::nvml_abi {
struct Memory {
  unsigned long long total, free, used;
};
struct Utilisation {
  unsigned gpu, memory;
};
struct Process {  // nvmlProcessInfo_t
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct Event {  // nvmlEventData_t
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kXidEvent = 8;  // nvmlEventTypeXidCriticalError
}  // namespace sweep::agent::nvml_abi
