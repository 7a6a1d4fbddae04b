#include "base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/expected.h"
#include "base/files.h"

namespace sweep {
namespace {

// Why a file cannot be read, without its name.
Error why_not(int error) {
  switch (error) {
    case ENOENT:
      return {"there is no such file; check the path", ErrorKind::kNotFound};
    case ELOOP:
      return {"its symbolic links lead in a circle; repair or remove the link", ErrorKind::kUnreadable};
    case EACCES:
    case EPERM:
      return {"this user may not read it; check its permissions", ErrorKind::kUnreadable};
    case ENOTDIR:
      return {"a part of the path is a file, not a directory; check the path", ErrorKind::kNotFound};
    default:
      return {fmt::format("cannot be read: {}", std::strerror(error)), ErrorKind::kUnreadable};
  }
}

std::string shown(const std::filesystem::path& path, bool stream) {
  if (path == "-" || path == "/dev/stdin") return "<stdin>";
  const bool nameless = path.string().starts_with("/dev/fd/") || path.string().starts_with("/proc/");
  return stream && nameless ? "<pipe>" : path.string();
}

}  // namespace

Expected<InputFile> read_input(const std::filesystem::path& path, std::size_t max_bytes, Streams streams) {
  const bool standard = path == "-" && streams == Streams::kTaken;
  const auto refuse = [&](const Error& why) {
    return fail(why.kind, path.string(), fmt::format("{}: {}", path.string(), why.message));
  };
  // Without waiting, so that a device or a pipe that is refused does not block.
  const int flags = O_RDONLY | O_CLOEXEC | (streams == Streams::kRefused ? O_NONBLOCK : 0);
  const Descriptor in(standard ? STDIN_FILENO : ::open(path.c_str(), flags));
  struct stat info {};
  if (in.get() < 0 || ::fstat(in.get(), &info) != 0) return refuse(why_not(errno));
  if (S_ISDIR(info.st_mode)) return refuse({"is a directory; name a file in it", ErrorKind::kUnreadable});
  const bool stream = standard || !S_ISREG(info.st_mode);
  const bool device = S_ISBLK(info.st_mode) ||
                      (S_ISCHR(info.st_mode) && !standard && path != "/dev/stdin" && ::isatty(in.get()) == 0);
  if (device || (stream && streams == Streams::kRefused))
    return refuse({"is a device or a pipe, not a file; name a file", ErrorKind::kUnreadable});
  InputFile out{std::string(), shown(path, stream), stream || path == "/dev/stdin"};
  while (out.bytes.size() <= max_bytes) {
    char buffer[1 << 16];
    const ssize_t got = ::read(in.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(why_not(errno));
    if (got == 0) return out;
    out.bytes.append(buffer, static_cast<std::size_t>(got));
  }
  return refuse(
      {fmt::format("larger than {} bytes, the most that is read", max_bytes), ErrorKind::kUnreadable});
}

}  // namespace sweep
