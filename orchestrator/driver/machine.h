// This machine: what it offers to trials, and where the programs of this build are.
#pragma once
#include <filesystem>

#include "orchestrator/plan/planner.h"

namespace sweep::driver {

i64 cpu_cores();

// CPU ranks may share cores (they time-share, and their times say little): up to this many on each.
inline constexpr i64 kCpuOversubscription = 8;

plan::Resources local_resources();

// Ranks at once where nothing else is said: its GPUs, else its cores.
i64 own_slots();

// The folder of this program, and of its companions sweep-agent and sweep-rank.
std::filesystem::path program_dir();

}  // namespace sweep::driver
