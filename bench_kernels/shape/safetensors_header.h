// SafetensorsHeader: the table of contents of a safetensors file (github.com/huggingface/safetensors,
// "Format"): 8 bytes of length (little-endian), that many bytes of JSON, then the tensors' bytes back to
// back. Untrusted input: the parser bounds every number before it uses it, accepts only tensors that tile the
// rest of the file exactly, and never reads past what it is given.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::shape {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // F64, F32, F16, BF16, I64, ...
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes of the file
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  // ordered by their place in the file
};

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100u << 20;  // the reference implementation's limit

// Bytes from the start of the file to the first tensor, from its first 8 bytes.
Expected<std::uint64_t> safetensors_data_offset(std::string_view first_bytes, std::uint64_t file_size);
// `bytes`: the file's first safetensors_data_offset() bytes (more is fine).
Expected<SafetensorsHeader> parse_safetensors_header(std::string_view bytes, std::uint64_t file_size);

}  // namespace sweep::shape
