// FoundGpu: a GPU that is really there, as its driver describes it, held against the one that a grid declares
// and against the GPUs that a build has code for. Pure; used where a node is judged before a run and by each
// rank before its trial.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::shape {

struct FoundGpu {
  std::string name;
  std::string compute_capability;   // "9.0"; empty: unknown
  std::optional<i64> memory_bytes;  // nullopt: unknown, or not to be compared
};

// Code for X.y runs on X.z, z >= y (binary compatibility within a major version).
bool has_code_for(const std::vector<std::string>& archs, const std::string& compute_capability);

// Whether the library's FlashAttention-2 runs on a catalogue's hardware: it is written for compute capability
// 8.0 and above (Dao 2023, arXiv 2307.08691; its README). CPU ranks compute it by other code; of hardware
// that is not known, nothing is excluded.
bool runs_flash(const std::string& hardware);
// Whether its kernels for GPUs take heads of this size (the checks of mha_fwd in PyTorch's flash_api.cpp).
inline bool flash_takes_heads_of(i64 head_dim) {
  return head_dim <= 256 && head_dim % 8 == 0;
}
// Whether the library multiplies the rows of all experts in one kernel there: its kernels are for compute
// capability 9.0 and 10.x.
bool runs_grouped(const std::string& hardware);
// Whether the wheel's NVRTC makes the fused kernels for it: CUDA 13 knows compute capability 7.5 and newer. Of
// hardware that is not known, nothing is excluded.
bool runs_fused(const std::string& hardware);

// Why the step, built with PyTorch's wheels, does not run on this hardware; nullopt: it does.
std::optional<std::string> not_run_by_wheels(const Hardware&);

// Says why it is not the declared hardware, with what is there and what to do; nullopt: it may be the
// declared one.
std::optional<std::string> not_the_declared(const Hardware& declared, const FoundGpu&);

}  // namespace sweep::shape
