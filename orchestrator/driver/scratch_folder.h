// ScratchFolder: an empty folder that is removed with the object.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/expected.h"

namespace sweep::driver {

class ScratchFolder {
 public:
  // Makes it in the folder for temporary files. Error: it cannot be made there.
  static Expected<ScratchFolder> make() {
    const auto parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / "sweep-scratch-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      return fail(parent.string() + ": no folder can be made there; set TMPDIR to another");
    return ScratchFolder(pattern);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ec;
    if (!path_.empty()) std::filesystem::remove_all(path_, ec);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace sweep::driver
