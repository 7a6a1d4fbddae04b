// ScriptFile: a script in the folder for temporary files, for a scheduler that is asked about it. No other user
// can know its name before, or change it. It is removed with the object.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace sweep::launch {

class ScriptFile {
 public:
  static Expected<ScriptFile> make(std::string_view script) {
    auto name = (std::filesystem::temp_directory_path() / "sweep-test-XXXXXX").string();
    const Descriptor file(::mkstemp(name.data()));  // O_EXCL, mode 0600
    if (file.get() < 0) return file_error("cannot be made", name);
    ScriptFile out(name);
    if (!write_all(file.get(), script)) return file_error("cannot be written", name);
    return out;
  }
  ScriptFile(ScriptFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScriptFile& operator=(ScriptFile&&) = delete;
  ~ScriptFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  explicit ScriptFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace sweep::launch
