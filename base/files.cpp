#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/expected.h"

namespace sweep {

Descriptor::~Descriptor() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

tl::unexpected<Error> file_error(std::string_view what, const std::filesystem::path& path, int error) {
  return tl::unexpected(Error{fmt::format("{}: {}: {}", path.string(), what, std::strerror(error)),
                              is_disk_full(error) ? ErrorKind::kDiskFull
                              : error == ESTALE   ? ErrorKind::kBusy
                                                  : ErrorKind::kUnwritable,
                              path.string()});
}

// errno says why.
static tl::unexpected<Error> unreadable(const std::filesystem::path& path) {
  auto error = file_error("cannot be read", path).value();
  if (error.kind == ErrorKind::kUnwritable) error.kind = ErrorKind::kUnreadable;
  return tl::unexpected(std::move(error));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

namespace files {

namespace {

// The bytes of an open file from offset on.
Expected<std::string> read_open(const Descriptor& in, const std::filesystem::path& file, std::uint64_t offset,
                                std::size_t max_bytes) {
  struct stat info {};
  if (::fstat(in.get(), &info) != 0) return unreadable(file);
  if (S_ISDIR(info.st_mode))
    return fail(ErrorKind::kUnreadable, file.string(),
                fmt::format("{}: is a folder, a file is expected", file.string()));
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size <= offset) return std::string();
  std::string bytes(std::min<std::uint64_t>(size - offset, max_bytes), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        ::pread(in.get(), bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable(file);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

constexpr auto kLookAgain = std::chrono::milliseconds(5), kAnotherWrites = std::chrono::milliseconds(1000);

}  // namespace

Expected<std::string> read_from(const std::filesystem::path& file, std::uint64_t offset,
                                std::size_t max_bytes) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.get() >= 0) return read_open(in, file, offset, max_bytes);
  if (errno == ENOENT) return std::string();
  return unreadable(file);
}

Expected<std::string> read(const std::filesystem::path& path, std::size_t max_bytes) {
  const Descriptor in(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.get() < 0 && (errno == ENOENT || errno == ENOTDIR))
    return fail(ErrorKind::kNotFound, path.string(), fmt::format("{}: no such file", path.string()));
  if (in.get() < 0) return unreadable(path);
  auto bytes = read_open(in, path, 0, max_bytes + 1);
  if (bytes && bytes->size() > max_bytes)
    return fail(ErrorKind::kUnreadable, path.string(),
                fmt::format("{}: longer than the {} bytes allowed", path.string(), max_bytes));
  return bytes;
}

Expected<std::string> read_existing(const std::filesystem::path& path, std::chrono::milliseconds within) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (true) {
    auto bytes = read(path);
    const bool there =
        bytes ? !bytes->empty()
              : bytes.error().kind != ErrorKind::kNotFound && bytes.error().kind != ErrorKind::kBusy;
    if (there || std::chrono::steady_clock::now() >= until) return bytes;
    std::this_thread::sleep_for(kLookAgain);
  }
}

std::string read_proc(const std::string& path, std::size_t max_bytes) {
  const Descriptor in(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.get() < 0) return {};
  std::string out;
  // A part holds nearly every such file whole. Agents read those of all processes again and again, with a limit of 1 MiB.
  std::array<char, 1 << 14> part;
  while (out.size() < max_bytes) {
    const ssize_t got = ::read(in.get(), part.data(), std::min(part.size(), max_bytes - out.size()));
    if (got <= 0) break;
    out.append(part.data(), static_cast<std::size_t>(got));
  }
  return out;
}

// On NFS a file that is opened has its true size; stat() answers from what was known up to a minute ago.
std::uint64_t size_of(const std::filesystem::path& file) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  return in.get() >= 0 && ::fstat(in.get(), &info) == 0 && S_ISREG(info.st_mode)
             ? static_cast<std::uint64_t>(info.st_size)
             : 0;
}

Expected<void> write_atomically(const std::filesystem::path& path, std::string_view bytes) {
  std::uint64_t unique = 0;  // pids repeat: the agents of several nodes may write into one shared folder
  (void)!::getrandom(&unique, sizeof unique, 0);
  const std::filesystem::path temporary = fmt::format("{}.tmp.{}.{:016x}", path.string(), ::getpid(), unique);
  {
    const Descriptor out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (out.get() < 0) return file_error("cannot be written", path);
    if (!write_all(out.get(), bytes) || ::fsync(out.get()) != 0) {
      const int error = errno;
      ::unlink(temporary.c_str());
      return file_error("cannot be written", path, error);
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return file_error("cannot be replaced", path, error);
  }
  const Descriptor folder(
      ::open(path.has_parent_path() ? path.parent_path().c_str() : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
  return {};
}

Expected<void> write_output(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  const bool link = std::filesystem::is_symlink(std::filesystem::symlink_status(path, ec));
  // /dev/stdout is a link to /proc/self/fd/1, behind which may be a regular file that a shell has opened.
  const bool of_process = link && std::filesystem::read_symlink(path, ec).string().starts_with("/proc/");
  const bool is_replaced = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  if (is_replaced && !of_process)
    return write_atomically(link ? std::filesystem::weakly_canonical(path, ec) : path, bytes);
  const Descriptor out(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (out.get() < 0 || !write_all(out.get(), bytes)) return file_error("cannot be written", path);
  return {};
}

Expected<void> write_once(const std::filesystem::path& path, std::string_view bytes) {
  const Descriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (out.get() >= 0 && write_all(out.get(), bytes)) return {};
  if (out.get() >= 0 || errno != EEXIST) return file_error("cannot be written", path);
  const auto until = std::chrono::steady_clock::now() + kAnotherWrites;
  while (std::chrono::steady_clock::now() < until) {
    const auto there = read(path);
    if (there && *there == bytes) return {};
    std::this_thread::sleep_for(kLookAgain);
  }
  return write_atomically(path, bytes);
}

}  // namespace files

namespace {

std::filesystem::path own_folder(const char* variable, const char* below_home, const char* without_home) {
  if (const char* told = std::getenv(variable); told != nullptr && told[0] == '/')
    return std::filesystem::path(told) / "sweep";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') home = without_home;
  return home == nullptr ? std::filesystem::path() : std::filesystem::path(home) / below_home / "sweep";
}

}  // namespace

std::filesystem::path config_folder() {
  return own_folder("XDG_CONFIG_HOME", ".config", nullptr);
}

std::filesystem::path cache_folder() {
  return own_folder("XDG_CACHE_HOME", ".cache", nullptr);
}

std::filesystem::path state_folder() {
  return own_folder("XDG_STATE_HOME", ".local/state", "/tmp");
}

}  // namespace sweep
