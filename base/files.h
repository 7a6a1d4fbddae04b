// Reading and replacing whole files, and the folders of this user.
#pragma once
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace sweep {

// Closes a file descriptor when it goes out of scope, standard input, output and error excepted.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

// Error: "PATH: WHAT: text of errno".
tl::unexpected<Error> file_error(std::string_view what, const std::filesystem::path& path, int error = errno);
// Writes all bytes. False: errno says why.
bool write_all(int fd, std::string_view bytes);

namespace files {

inline constexpr std::size_t kMaxBytes = 64u << 20;

// Reads from offset to the end of the file (reopened each time: NFS). An absent file reads as empty.
Expected<std::string> read_from(const std::filesystem::path& file, std::uint64_t offset,
                                std::size_t max_bytes = kMaxBytes);
// Error: the file is absent, a folder, unreadable or longer than max_bytes.
Expected<std::string> read(const std::filesystem::path& path, std::size_t max_bytes = kMaxBytes);
// Reads a file that is known to be there. While it is absent, empty or stale it is read again, at most for so
// long: a shared file system may show a new or renamed file late.
Expected<std::string> read_existing(const std::filesystem::path& path,
                                    std::chrono::milliseconds within = std::chrono::seconds(5));
// A file of /proc or /sys, which reports no size: read until its end, at most max_bytes; empty: unreadable.
std::string read_proc(const std::string& path, std::size_t max_bytes = 1u << 14);
std::uint64_t size_of(const std::filesystem::path& file);  // 0: absent
// Writes bytes to a temporary file beside path, syncs it, renames it over path and syncs the folder.
Expected<void> write_atomically(const std::filesystem::path& path, std::string_view bytes);
// Writes to a path that a person named. A regular file is replaced at once (write_atomically), a link's target too. A device
// or a FIFO, such as /dev/stdout, is written where it is.
Expected<void> write_output(const std::filesystem::path& path, std::string_view bytes);
// Writes a file that several processes write, each with the same bytes, and that others already read: the first one
// writes it, and the others wait until it is whole. A file that stays another one is replaced.
Expected<void> write_once(const std::filesystem::path& path, std::string_view bytes);

}  // namespace files

// $XDG_CONFIG_HOME/sweep, else ~/.config/sweep; empty: neither variable is set.
std::filesystem::path config_folder();
// $XDG_CACHE_HOME/sweep, else ~/.cache/sweep; empty: neither variable is set.
std::filesystem::path cache_folder();
// $XDG_STATE_HOME/sweep, else ~/.local/state/sweep; without a home below /tmp.
std::filesystem::path state_folder();

}  // namespace sweep
