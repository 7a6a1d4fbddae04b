#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "worker/phantom/library_kernels.h"

namespace sweep::phantom {
namespace {

constexpr int kMostLists = 5, kBlocks = 320;
constexpr std::size_t kMostTensors[kMostLists] = {110, 64, 48, 36, 30};
constexpr std::size_t kMostCounts[kMostLists] = {96, 64, 48, 36, 30};
constexpr std::int64_t kChunk = 65536;

// Bytes of a template argument's type; 0: another type.
double width_of(std::string_view mangled) {
  if (mangled.starts_with("N3c108BFloat16E") || mangled.starts_with("N3c104HalfE")) return 2;
  if (mangled.starts_with('d')) return 8;
  return mangled.starts_with('f') ? 4 : 0;
}

int number_after(const std::string& text, std::size_t at) {
  return std::atoi(text.c_str() + at);
}

}  // namespace

ListKernel ListKernel::named(const std::string& mangled) {
  constexpr std::string_view kTensors = "TensorListMetadataILi", kFunctor = "FunctorI";
  // Kernels of this name in other libraries (DeepSpeed, Apex, Transformer Engine) have other tables.
  if (!mangled.starts_with("_ZN2at6native") || mangled.find("multi_tensor_apply_kernel") == std::string::npos)
    return {};
  const auto tensors = mangled.find(kTensors), functor = mangled.find(kFunctor);
  if (tensors == std::string::npos || functor == std::string::npos) return {};
  ListKernel out;
  out.lists = number_after(mangled, tensors + kTensors.size());
  out.counts = mangled.find("FusedOptimizer") != std::string::npos;
  const auto type = functor + kFunctor.size();
  out.width = width_of(std::string_view(mangled).substr(type));
  // An optimizer reads all and writes all but gradients; other functors say depth, lists read, and which is written.
  const auto depth = mangled.find("Li", type);
  const auto read = depth == std::string::npos ? depth : mangled.find("Li", depth + 2);
  if (out.counts || mangled.find("FusedSgd") != std::string::npos)
    out.passes = 2.0 * out.lists - 1;
  else if (read != std::string::npos)
    out.passes = number_after(mangled, read + 2) + 1;
  const bool known = out.lists >= 1 && out.lists <= kMostLists && out.width > 0 && out.passes > 0;
  return known ? out : ListKernel{};
}

double ListKernel::bytes(const void* tensors, unsigned blocks) const {
  const auto depth = static_cast<std::size_t>(lists - 1);
  const std::size_t sizes = static_cast<std::size_t>(lists) * kMostTensors[depth] * sizeof(void*);
  const std::size_t of_block =
      sizes + kMostTensors[depth] * sizeof(std::int64_t) + (counts ? kMostCounts[depth] * sizeof(void*) : 0);
  const std::size_t chunks = (of_block + kBlocks + 3) / 4 * 4;
  const auto* bytes = static_cast<const unsigned char*>(tensors);
  double numbers = 0;
  for (unsigned block = 0; block < std::min<unsigned>(blocks, kBlocks); ++block) {
    std::int64_t size = 0;
    std::int32_t chunk = 0;
    std::memcpy(&size, bytes + sizes + bytes[of_block + block] * sizeof size, sizeof size);
    std::memcpy(&chunk, bytes + chunks + block * sizeof chunk, sizeof chunk);
    numbers += static_cast<double>(std::clamp<std::int64_t>(size - chunk * kChunk, 0, kChunk));
  }
  return numbers * passes * width;
}

}  // namespace sweep::phantom
