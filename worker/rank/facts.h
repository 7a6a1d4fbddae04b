// Facts of this build of the training half: what `sweep doctor` and the records say about LibTorch.
#pragma once
#include <string>

namespace sweep::rank {

// JSON object: version, build, libtorch, cuda (of the wheel), archs (GPU code it carries), gpu_plugin (built
// or not). Loads no GPU library.
std::string facts();

}  // namespace sweep::rank
