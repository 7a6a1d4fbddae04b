#include "orchestrator/driver/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "runtime/visible_gpus.h"

namespace sweep::driver {
namespace {

// Phantom GPUs have no device files: the environment that describes them says how many there are.
i64 phantom_gpus() {
  if (std::getenv("SWEEP_PHANTOM") == nullptr) return 0;
  const char* count = std::getenv("SWEEP_PHANTOM_GPUS");
  return count == nullptr ? 1 : std::max(0, std::atoi(count));
}

}  // namespace

i64 cpu_cores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

plan::Resources local_resources() {
  plan::Resources here;
  here.cpu_slots = cpu_cores() * kCpuOversubscription;
  here.host_memory_bytes = static_cast<i64>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  here.gpus = std::max<i64>(gpu_device_files(), phantom_gpus());
  here.gpus = std::min<i64>(here.gpus, std::ssize(visible_gpus(static_cast<int>(here.gpus))));
  return here;
}

i64 own_slots() {
  const i64 gpus = local_resources().gpus;
  return gpus > 0 ? gpus : cpu_cores();
}

std::filesystem::path program_dir() {
  std::error_code ec;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
  return ec ? std::filesystem::current_path() : self.parent_path();
}

}  // namespace sweep::driver
