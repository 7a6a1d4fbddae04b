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
}  // namespace sweep::agent::nvml_abi
