// Holes in the middle of a log; see the header.
#include "worker/agent/evidence/rank_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep::agent {

namespace {

struct File {
  explicit File(const std::filesystem::path& path, int flags) : fd(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  i64 size() const {
    struct stat info {};
    return fd >= 0 && ::fstat(fd, &info) == 0 ? info.st_size : 0;
  }
  std::string read(i64 from, i64 count) const {
    std::string out(static_cast<std::size_t>(std::max<i64>(count, 0)), '\0');
    const ssize_t got = out.empty() ? 0 : ::pread(fd, out.data(), out.size(), from);
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
  }
  int fd;
};

std::string cut_line(i64 bytes) {
  return fmt::format("\n[{} bytes of this log were cut here]\n", bytes);
}

}  // namespace

RankLog::RankLog(std::filesystem::path file, i64 limit_bytes)
    : file_(std::move(file)), half_(std::max<i64>(limit_bytes, 8192) / 2) {}

void RankLog::look() {
  struct stat info {};
  if (::stat(file_.c_str(), &info) != 0 || info.st_size - holed_ <= 2 * half_) return;
  const File file(file_, O_RDWR | O_APPEND);
  if (file.fd < 0) return;
  if (holes_) {
    const i64 hole = file.size() - 2 * half_;
    holes_ = ::fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, half_, hole) == 0;
    if (holes_) holed_ = hole;
  }
  if (!holes_) cut_back(file.fd, file.size());
}

void RankLog::cut_back(int fd, i64 size) {
  const File file(file_, O_RDONLY);
  const i64 kept = half_ / 2;
  const std::string text = cut_line(size - half_ - kept) + file.read(size - kept, kept);
  if (::ftruncate(fd, half_) == 0) (void)!::write(fd, text.data(), text.size());
}

void RankLog::compact() {
  look();
  if (holed_ == 0) return;
  const File file(file_, O_RDWR);
  const i64 size = file.size();
  if (file.fd < 0 || size < holed_ + half_) return;
  const std::string text = cut_line(holed_) + file.read(half_ + holed_, size - half_ - holed_);
  if (::pwrite(file.fd, text.data(), text.size(), half_) != static_cast<ssize_t>(text.size())) return;
  if (::ftruncate(file.fd, half_ + static_cast<i64>(text.size())) == 0) holed_ = 0;
}

std::string RankLog::tail(std::size_t max_bytes) const {
  const File file(file_, O_RDONLY);
  const i64 size = file.size(), from = std::max<i64>(0, size - static_cast<i64>(max_bytes));
  std::string text = file.fd < 0 ? std::string() : file.read(from, size - from);
  if (const auto line = text.find('\n'); from > 0 && line != std::string::npos && line + 1 < text.size())
    text.erase(0, line + 1);
  return nlohmann::json::parse(dump(nlohmann::json(text))).get<std::string>();  // dump replaces invalid bytes
}

}  // namespace sweep::agent
