#include "orchestrator/launch/ssh/ssh_logs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/ssh/channel.h"

namespace sweep::launch {
namespace {

namespace fs = std::filesystem;

bool is_plain_file(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
}
bool is_real_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(fs::symlink_status(path, ec));
}

// A link in an archive could lead what is unpacked next to anywhere: files are moved out of a folder of their
// own.
void take_files(const fs::path& from, const fs::path& spool, const std::string& log) {
  std::error_code ec;
  if (is_plain_file(from / "agent.log")) fs::rename(from / "agent.log", spool / log, ec);
  if (!is_real_folder(from / "attempts")) return;
  for (const auto& attempt : fs::directory_iterator(from / "attempts", ec)) {
    const std::string name = attempt.path().filename().string();
    const bool number = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number || !is_real_folder(attempt.path())) continue;
    fs::create_directories(spool / "attempts" / name, ec);
    for (const auto& file : fs::directory_iterator(attempt.path(), ec))
      if (is_plain_file(file.path()))
        fs::rename(file.path(), spool / "attempts" / name / file.path().filename(), ec);
  }
}

awaitable<Channel::Ends> unpack(boost::asio::io_context& io, std::vector<std::string> words,
                                std::unique_ptr<Channel>& tar) {
  return wait_for_call<Channel::Ends>([&io, words = std::move(words), &tar](Channel::OnEnded ended) {
    tar = std::make_unique<Channel>(
        io, words, [](std::string_view) {}, std::move(ended));
    tar->close_input();
  });
}

}  // namespace

// Both parts are in every archive, so that a missing one means that it is damaged.
std::string logs_line(const std::string& folder) {
  return fmt::format(
      "cd {} 2>/dev/null || exit 0; mkdir -p attempts && : >> agent.log && "
      "tar -cf - --exclude='*.progress' attempts agent.log",
      shell_word(folder));
}

fs::path logs_archive(const fs::path& spool, std::size_t node) {
  return spool / fmt::format("logs.n{}.tar", node);
}

awaitable<bool> unpack_logs(boost::asio::io_context& io, fs::path archive, fs::path spool, std::size_t node) {
  const fs::path folder = spool / fmt::format("unpacking.n{}", node);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  fs::create_directories(folder, ignored);
  const std::vector<std::string> words{
      "tar", "-xf",           archive.string(), "--no-same-owner", "--no-same-permissions",
      "-C",  folder.string(), "attempts",       "agent.log"};
  std::unique_ptr<Channel> tar;
  const auto ends = co_await unpack(io, words, tar);
  take_files(folder, spool, node == 0 ? "agent.log" : fmt::format("agent.n{}.log", node));
  fs::remove_all(folder, ignored);
  fs::remove(archive, ignored);
  co_return ends.code == 0;
}

}  // namespace sweep::launch
