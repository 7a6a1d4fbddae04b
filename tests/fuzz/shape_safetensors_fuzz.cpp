// Any bytes, as a whole file: parsing never crashes, and what it accepts lies inside the file and tiles it.
#include <cstdlib>

#include "bench_kernels/shape/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto header = sweep::shape::parse_safetensors_header(bytes, size);
  if (!header) {
    if (header.error().message.empty()) std::abort();
    return 0;
  }
  std::uint64_t place = *sweep::shape::safetensors_data_offset(bytes, size);
  for (const auto& tensor : header->tensors) {
    if (tensor.begin != place || tensor.end < tensor.begin || tensor.end > size) std::abort();
    place = tensor.end;
  }
  if (place != size) std::abort();
  return 0;
}
