#include "runtime/spool_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/expected.h"
#include "base/files.h"
#include "schema/spool.h"

namespace sweep::spool {
Expected<std::uint64_t> append_copy(const fs::path& file, std::uint64_t offset, std::string_view bytes,
                                    Copy how) {
  const std::uint64_t size = files::size_of(file);
  if (offset > size)
    return fail(ErrorKind::kUnwritable, file.string(),
                fmt::format("{}: bytes {} to {} of it are missing", file.string(), size, offset));
  bytes.remove_prefix(std::min<std::size_t>(bytes.size(), size - offset));
  if (bytes.empty() && how == Copy::kUnsynced) return size;
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (out.get() < 0 || !write_all(out.get(), bytes) || (how == Copy::kSynced && ::fdatasync(out.get()) != 0))
    return file_error("cannot be written", file);
  return size + bytes.size();
}

Expected<Writer> Writer::open(const fs::path& file, std::string allocation, i64 incarnation) {
  SWEEP_GET(auto bytes, files::read_from(file, 0, SIZE_MAX));
  const Parsed parsed = parse(bytes);
  Writer w;
  w.fd_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (w.fd_ < 0) return file_error("cannot be opened for writing", file);
  if (parsed.consumed < bytes.size() && ::ftruncate(w.fd_, static_cast<off_t>(parsed.consumed)) != 0)
    return file_error("its torn last line cannot be cut off", file);
  w.path_ = file.string();
  w.allocation_ = std::move(allocation);
  w.incarnation_ = incarnation;
  w.end_ = parsed.consumed;
  for (const Line& line : parsed.lines) w.seq_ = std::max(w.seq_, line.seq);
  return w;
}

Expected<i64> Writer::append(std::string_view kind, const nlohmann::json& body) {
  const std::string bytes = (torn_ ? "\n" : "") + frame(allocation_, incarnation_, seq_ + 1, kind, body);
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  if (before >= 0 && static_cast<std::uint64_t>(before) < end_)
    return fail(
        ErrorKind::kUnwritable, path_,
        fmt::format("{}: another process cut it to {} bytes, of {} that were written", path_, before, end_));
  if (!write_all(fd_, bytes) || ::fdatasync(fd_) != 0) {
    const int error = errno;
    if (before >= 0 && ::ftruncate(fd_, before) != 0) {
      torn_ = torn_ || ::lseek(fd_, 0, SEEK_END) != before;
      return file_error("cannot be written nor cut back", path_, error);
    }
    return file_error("cannot be written (nothing was kept of the line)", path_, error);
  }
  torn_ = false;
  if (before >= 0) end_ = static_cast<std::uint64_t>(before) + bytes.size();
  return ++seq_;
}

bool Writer::displaced() const {
  struct stat ours {
  }, there{};
  if (::fstat(fd_, &ours) != 0) return false;
  if (::stat(path_.c_str(), &there) != 0) return errno == ENOENT || errno == ENOTDIR;
  return ours.st_ino != there.st_ino || ours.st_dev != there.st_dev ||
         static_cast<std::uint64_t>(there.st_size) < end_;
}

Writer::Writer(Writer&& other) noexcept {
  *this = std::move(other);
}

Writer& Writer::operator=(Writer&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(allocation_, other.allocation_);
  std::swap(incarnation_, other.incarnation_);
  std::swap(seq_, other.seq_);
  std::swap(end_, other.end_);
  std::swap(torn_, other.torn_);
  return *this;
}

Writer::~Writer() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace sweep::spool
