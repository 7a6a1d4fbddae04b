// ScratchFile: room for tensors on disk, for the length of its owner's life. The file has no name once it is
// open, so that nothing is left behind however the process ends; all its bytes are reserved at once, so that
// a full disk is an error before the first step.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace sweep::parallel {

// Errors say by this what the file is for.
struct ScratchUse {
  const char* axis = "offload disk";  // the axis and word that want it
  const char* holds = "the optimizer state";
  const char* cure = "point TMPDIR to a folder with room, or use offload optimizer";
};
// Use of a file in the checkpoint folder.
constexpr ScratchUse in_checkpoint_folder(const char* axis, const char* holds) {
  return {axis, holds, "name a folder with room as checkpoint_folder of the site profile"};
}

// Bytes that are on their way between a device and a file at once.
inline constexpr std::int64_t kStaged = std::int64_t{32} << 20;

class ScratchFile {
 public:
  // A file in the folder (empty: TMPDIR, else /tmp). Reserves that many bytes; 0: it grows as it is written. Throws
  // std::runtime_error when it cannot have them there.
  explicit ScratchFile(std::int64_t bytes, const std::filesystem::path& folder = {},
                       const ScratchUse& use = {});
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void read(void* to, std::int64_t bytes, std::int64_t offset) const;
  void write(const void* from, std::int64_t bytes, std::int64_t offset);
  // Returns when all bytes are on the disk.
  void sync();
  std::int64_t size() const;
  // The system's copy in memory goes: what is read next comes from the disk.
  void forget_cached() const;

 private:
  [[noreturn]] void fail(const std::string& what, int error) const;

  std::filesystem::path folder_;
  ScratchUse use_;
  int file_ = -1;
};

}  // namespace sweep::parallel
