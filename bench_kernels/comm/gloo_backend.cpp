#include <torch/version.h>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "bench_kernels/comm/group.h"
#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::comm {

// The stub headers stand in for Gloo's: these are the sizes with the real ones.
static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 11,
              "check the Gloo stub headers against this LibTorch");
static_assert(sizeof(c10d::ProcessGroupGloo) == 488 && sizeof(c10d::ProcessGroupGloo::Options) == 176);

BackendPtr make_gloo(const GroupOptions& options) {
  using Gloo = c10d::ProcessGroupGloo;
  const auto store = group_store(options, "gloo");
  const std::string address = options.address.empty() ? "127.0.0.1" : options.address;
  memory::count_this_thread_only();  // Gloo's own threads flatten tensors at moments of their own
  auto gloo_options = Gloo::Options::create(options.timeout);
  gloo_options->devices.push_back(Gloo::createDeviceForHostname(address, /*lazyInit=*/true));
  gloo_options->threads = 1;
  BackendPtr backend = c10::make_intrusive<Gloo>(store, options.rank, options.world, std::move(gloo_options));
  wait(*backend->barrier());  // when this returns, all ranks have joined, like with the other backends
  return backend;
}

}  // namespace sweep::comm
