// ScratchFile: room for tensors on disk, for the length of its owner's life. The file has no name once it is
// open, so that nothing is left behind however the process ends; all its bytes are reserved at once, so that
// a full disk is an error before the first step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace sweep::parallel {

class ScratchFile {
 public:
  // In the folder (TMPDIR, else /tmp). Throws std::runtime_error when it cannot have that many bytes there.
  explicit ScratchFile(std::int64_t bytes,
                       const std::filesystem::path& folder = std::filesystem::temp_directory_path());
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void read(void* to, std::int64_t bytes, std::int64_t offset) const;
  void write(const void* from, std::int64_t bytes, std::int64_t offset);

 private:
  std::filesystem::path folder_;
  int file_ = -1;
};

}  // namespace sweep::parallel
