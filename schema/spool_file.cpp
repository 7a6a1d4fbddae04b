// Spool files on disk: the appending writer, reading from an offset, atomic replacement.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "schema/spool.h"

namespace sweep::spool {
namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

tl::unexpected<Error> failed(std::string_view what, const fs::path& path, int error = errno) {
  return tl::unexpected(Error{fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)),
                              error == ENOSPC || error == EDQUOT});
}

// Writes all bytes or says why not; on failure errno is kept.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Expected<std::string> read_from(const fs::path& file, std::uint64_t offset, std::size_t max_bytes) {
  Descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (in.fd < 0) {
    if (errno == ENOENT) return std::string();
    return failed("cannot be read", file);
  }
  struct stat info {};
  if (::fstat(in.fd, &info) != 0) return failed("cannot be read", file);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size <= offset) return std::string();
  std::string bytes(std::min<std::uint64_t>(size - offset, max_bytes), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        ::pread(in.fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("cannot be read", file);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

Expected<std::string> read_file(const fs::path& path, std::size_t max_bytes) {
  std::error_code ec;
  const auto status = fs::status(path, ec);
  if (!fs::exists(status)) return fail(fmt::format("{}: no such file", path.string()));
  if (fs::is_directory(status))
    return fail(fmt::format("{}: is a folder, a file is expected", path.string()));
  auto bytes = read_from(path, 0, max_bytes + 1);
  if (bytes && bytes->size() > max_bytes)
    return fail(fmt::format("{}: longer than the {} bytes allowed", path.string(), max_bytes));
  return bytes;
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code ec;
  const auto size = fs::file_size(file, ec);
  return ec ? 0 : size;
}

Expected<std::uint64_t> append_copy(const fs::path& file, std::uint64_t offset, std::string_view bytes,
                                    Copy how) {
  const std::uint64_t size = size_of(file);
  if (offset > size)
    return fail(fmt::format("{}: bytes {} to {} of it are missing", file.string(), size, offset));
  bytes.remove_prefix(std::min<std::size_t>(bytes.size(), size - offset));
  if (bytes.empty()) return size;
  const Descriptor out{::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  if (out.fd < 0 || !write_all(out.fd, bytes) || (how == Copy::kSynced && ::fdatasync(out.fd) != 0))
    return failed("cannot be written", file);
  return size + bytes.size();
}

Expected<void> write_atomically(const fs::path& path, std::string_view bytes) {
  std::uint64_t unique = 0;  // pids repeat: the agents of several nodes may write into one shared folder
  (void)!::getrandom(&unique, sizeof unique, 0);
  const fs::path temporary = fmt::format("{}.tmp.{}.{:016x}", path.string(), ::getpid(), unique);
  {
    Descriptor out{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (out.fd < 0) return failed("cannot be written", temporary);
    if (!write_all(out.fd, bytes) || ::fsync(out.fd) != 0) {
      const int error = errno;
      ::unlink(temporary.c_str());
      return failed("cannot be written", path, error);
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return failed("cannot be replaced", path, error);
  }
  Descriptor folder{
      ::open(path.has_parent_path() ? path.parent_path().c_str() : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.fd >= 0) ::fsync(folder.fd);
  return {};
}

Expected<Writer> Writer::open(const fs::path& file, std::string allocation, i64 incarnation) {
  auto bytes = read_from(file, 0, SIZE_MAX);
  if (!bytes) return tl::unexpected(bytes.error());
  const Parsed parsed = parse(*bytes);
  Writer w;
  w.fd_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (w.fd_ < 0) return failed("cannot be opened for writing", file);
  if (parsed.consumed < bytes->size() && ::ftruncate(w.fd_, static_cast<off_t>(parsed.consumed)) != 0)
    return failed("its torn last line cannot be cut off", file);
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
    return fail(fmt::format("{}: somebody cut it to {} bytes, of {} that were written", path_, before, end_));
  if (!write_all(fd_, bytes) || ::fdatasync(fd_) != 0) {
    const int error = errno;
    if (before >= 0 && ::ftruncate(fd_, before) != 0) {
      torn_ = torn_ || ::lseek(fd_, 0, SEEK_END) != before;
      return failed("cannot be written nor cut back", path_, error);
    }
    return failed("cannot be written (nothing was kept of the line)", path_, error);
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
