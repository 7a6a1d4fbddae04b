#include "bench_kernels/parallel/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace sweep::parallel {
namespace {

[[noreturn]] void fail_on_disk(const std::string& what, const std::filesystem::path& folder, int error) {
  throw std::runtime_error("offload disk: " + what + " in " + folder.string() + ": " + std::strerror(error) +
                           "; point TMPDIR to a folder with room, or use offload optimizer.");
}

// Moves all bytes, whatever the calls take at once. A read behind the end never happens: all is reserved.
template <class Call, class Byte>
int move_all(Call call, int file, Byte* data, std::int64_t bytes, std::int64_t offset) {
  while (bytes > 0) {
    const ssize_t n = call(file, data, static_cast<std::size_t>(bytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    data += n, bytes -= n, offset += n;
  }
  return 0;
}

}  // namespace

ScratchFile::ScratchFile(std::int64_t bytes, const std::filesystem::path& folder) : folder_(folder) {
  std::string name = (folder / "sweep-optimizer-XXXXXX").string();
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) fail_on_disk("cannot make a file", folder_, errno);
  unlink(name.c_str());
  const int error = bytes > 0 ? posix_fallocate(file_, 0, bytes) : 0;
  if (error == 0) return;
  close(file_);
  fail_on_disk("cannot reserve " + std::to_string(bytes) + " bytes for the optimizer state", folder_, error);
}

ScratchFile::~ScratchFile() {
  close(file_);
}

void ScratchFile::read(void* to, std::int64_t bytes, std::int64_t offset) const {
  const int error = move_all(pread, file_, static_cast<char*>(to), bytes, offset);
  if (error != 0) fail_on_disk("cannot read the optimizer state", folder_, error);
}

void ScratchFile::write(const void* from, std::int64_t bytes, std::int64_t offset) {
  const int error = move_all(pwrite, file_, static_cast<const char*>(from), bytes, offset);
  if (error != 0) fail_on_disk("cannot write the optimizer state", folder_, error);
}

}  // namespace sweep::parallel
