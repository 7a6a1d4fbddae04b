// A text that a user names for reading: a file, or a stream such as standard input or <(program). Bounded;
// what cannot be read is said with its cause and a way out.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

#include "base/expected.h"

namespace sweep {

enum class Streams { kRefused, kTaken };  // pipes, terminals; other devices are never taken

struct InputFile {
  std::string bytes;
  std::string shown_as;    // the path; "<stdin>" or "<pipe>" for what has no lasting one
  bool is_stream = false;  // it cannot be read a second time
};

// `path` may be "-" for standard input, where streams are taken. The message begins with the path.
Expected<InputFile> read_input(const std::filesystem::path& path, std::size_t max_bytes, Streams streams);

}  // namespace sweep
