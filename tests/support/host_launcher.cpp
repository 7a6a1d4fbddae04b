#include "tests/support/host_launcher.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <iterator>

#include "bench_kernels/kernels/device_ops.h"
#include "tests/device/host_kernels.h"

namespace sweep::testing {
namespace {

constexpr std::string_view kNames[] = {
#define SWEEP_KERNEL_NAME(kernel, Args, body) #kernel,
    SWEEP_DEVICE_KERNELS(SWEEP_KERNEL_NAME)
#undef SWEEP_KERNEL_NAME
};
using Counts = std::array<std::atomic<i64>, std::size(kNames)>;

// In memory that forked processes share.
Counts& counts() {
  static Counts* const shared = [] {
    void* const room =
        mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(room != MAP_FAILED, "no memory to count launches in");
    return new (room) Counts{};
  }();
  return *shared;
}

void launch(const kernels::device::Launch& l) {
  TORCH_CHECK(l.bytes > 0, l.kernel, " says that it moves ", l.bytes, " bytes");
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), l.kernel);
  TORCH_CHECK(name != std::end(kNames), "no kernel is called ", l.kernel);
  ++counts().at(static_cast<std::size_t>(name - kNames));
  const host_kernels::Shape shape{l.blocks, l.threads, l.shared};
  switch (l.type) {
    case at::kFloat:
      return host_kernels::run<float>(l.kernel, l.packed, shape, l.args);
    case at::kDouble:
      return host_kernels::run<double>(l.kernel, l.packed, shape, l.args);
    case at::kBFloat16:
      return host_kernels::run<device::Bf16>(l.kernel, l.packed, shape, l.args);
    case at::kHalf:
      return host_kernels::run<device::Fp16>(l.kernel, l.packed, shape, l.args);
    default:
      TORCH_CHECK(false, l.kernel, " is not there for ", l.type);
  }
}

}  // namespace

HostKernels::HostKernels() : before_(kernels::path()) {
  for (auto& count : counts()) count = 0;
  kernels::device::set_launcher(&launch);
  kernels::set_path(kernels::Path::kDevice);
}

HostKernels::~HostKernels() {
  kernels::device::set_launcher(nullptr);
  kernels::set_path(before_);
}

std::map<std::string, i64> HostKernels::launches() const {
  std::map<std::string, i64> out;
  for (std::size_t i = 0; i < counts().size(); ++i)
    if (counts()[i] > 0) out[std::string(kNames[i])] = counts()[i];
  return out;
}

}  // namespace sweep::testing
