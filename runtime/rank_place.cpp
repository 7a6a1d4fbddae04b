#include "runtime/rank_place.h"

#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace sweep {

Expected<void> keep_to_place(const RankLaunch& launch) {
  if (!launch.devices.empty() && setenv("CUDA_VISIBLE_DEVICES", launch.devices.c_str(), 1) != 0)
    return fail(std::string("cannot set CUDA_VISIBLE_DEVICES: ") + std::strerror(errno));
  // Numbers GPUs like NVML: CUDA's own order would be by speed.
  if (setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) != 0)
    return fail(std::string("cannot set CUDA_DEVICE_ORDER: ") + std::strerror(errno));
  if (launch.cores.empty()) return {};
  cpu_set_t own;
  CPU_ZERO(&own);
  std::istringstream numbers(launch.cores);
  for (std::string number; std::getline(numbers, number, ',');) {
    const int core = std::atoi(number.c_str());
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &own);
  }
  if (sched_setaffinity(0, sizeof own, &own) == 0) return {};
  return fail("cannot keep to the cores " + launch.cores + ": " + std::strerror(errno));
}

}  // namespace sweep
