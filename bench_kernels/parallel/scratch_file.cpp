#include "bench_kernels/parallel/scratch_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace sweep::parallel {
namespace {

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

void ScratchFile::fail(const std::string& what, int error) const {
  throw std::runtime_error(std::string(use_.axis) + ": " + what + " in " + folder_.string() + ": " +
                           std::strerror(error) + "; " + use_.cure + ".");
}

ScratchFile::ScratchFile(std::int64_t bytes, const std::filesystem::path& folder, const ScratchUse& use)
    : folder_(folder.empty() ? std::filesystem::temp_directory_path() : folder), use_(use) {
  std::string name = (folder_ / "sweep-scratch-XXXXXX").string();
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) fail("cannot make a file", errno);
  unlink(name.c_str());
  const int error = bytes > 0 ? posix_fallocate(file_, 0, bytes) : 0;
  if (error == 0) return;
  close(file_);
  fail("cannot reserve " + std::to_string(bytes) + " bytes for " + use_.holds, error);
}

ScratchFile::~ScratchFile() {
  close(file_);
}

void ScratchFile::read(void* to, std::int64_t bytes, std::int64_t offset) const {
  const int error = move_all(pread, file_, static_cast<char*>(to), bytes, offset);
  if (error != 0) fail(std::string("cannot read ") + use_.holds, error);
}

void ScratchFile::write(const void* from, std::int64_t bytes, std::int64_t offset) {
  const int error = move_all(pwrite, file_, static_cast<const char*>(from), bytes, offset);
  if (error != 0) fail(std::string("cannot write ") + use_.holds, error);
}

void ScratchFile::sync() {
  if (fdatasync(file_) != 0) fail(std::string("cannot write ") + use_.holds, errno);
}

void ScratchFile::forget_cached() const {
  (void)posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);  // a wish: some file systems keep it
}

std::int64_t ScratchFile::size() const {
  struct stat info {};
  if (fstat(file_, &info) != 0) fail("cannot look at the file", errno);
  return info.st_size;
}

}  // namespace sweep::parallel
