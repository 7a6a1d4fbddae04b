// Tensors as files of their bytes alone, as numpy's tofile and fromfile have them: for the checks against other libraries.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace sweep::testing {

// Shape [numbers of the file].
inline at::Tensor read_tensor(const std::filesystem::path& file, at::ScalarType type) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto n = static_cast<std::int64_t>(bytes.size() / c10::elementSize(type));
  return at::from_blob(bytes.data(), {n}, type).clone();
}

inline void write_tensor(const std::filesystem::path& file, const at::Tensor& t) {
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char*>(t.const_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
}

}  // namespace sweep::testing
