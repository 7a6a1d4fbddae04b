// TemporaryFolder: the path of a folder that a test has for itself, and that goes with what it holds.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace sweep {

class TemporaryFolder : public std::filesystem::path {
 public:
  TemporaryFolder() : path(made()) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(*this, ignored);
  }

 private:
  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "sweep-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder " + name);
    return name;
  }
};

}  // namespace sweep
