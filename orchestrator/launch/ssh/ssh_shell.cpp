#include "orchestrator/launch/ssh/ssh_shell.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/programs.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/ssh/banner_skipper.h"
#include "runtime/attempt_token.h"

namespace sweep::launch {

namespace {

namespace fs = std::filesystem;
constexpr double kForMasters = 5;     // seconds to end a shared connection
constexpr int kAnotherCommand = 126;  // the code of shells for a program that cannot be executed

// A folder that only this user can enter, with a path short enough for a socket. Empty: the connection is not
// shared.
std::string control_folder() {
  const std::string path = fmt::format("/tmp/sweep-ssh-{}", ::geteuid());
  struct stat info {};
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return {};
  const bool ours = ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                    info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0;
  return ours ? path : std::string();
}

// A session that never ran our line printed something else; that is the only clue.
void without_an_answer(SshShell::CommandResult& said, const std::string& greeting) {
  said.out = greeting;
  if (said.code != 0) return;
  said.code = kAnotherCommand;
  said.err = fmt::format("the login there runs something else than what it is asked{}{}",
                         greeting.empty() ? "" : ", and says: ", last_line(greeting));
}

}  // namespace

struct SshShell::Asking : std::enable_shared_from_this<Asking> {
  explicit Asking(boost::asio::io_context& io) : timer(io) {}
  awaitable<Channel::Ends> run(boost::asio::io_context& io, std::vector<std::string> words, std::string input,
                               double limit_s) {
    return wait_for_call<Channel::Ends>([this, &io, words = std::move(words), input = std::move(input),
                                         limit_s](Channel::OnEnded ended) mutable {
      channel = std::make_unique<Channel>(
          io, words, [this](std::string_view bytes) { receive(bytes); }, std::move(ended));
      if (!input.empty()) channel->write(std::move(input));
      channel->close_input();
      end_after(limit_s);
    });
  }
  void end_after(double limit_s) {
    timer.expires_after(std::chrono::milliseconds(static_cast<i64>(limit_s * 1000)));
    timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto late = weak.lock();
      if (error || !late) return;
      late->said.timed_out = true;
      late->channel->kill();
    });
  }
  void receive(std::string_view bytes) {
    bytes = greeting.take(bytes);
    if (!path.empty()) {
      if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) channel->kill();
      return;
    }
    too_much = too_much || said.out.size() + bytes.size() > kMostKept;
    if (too_much) return channel->kill();
    said.out.append(bytes);
  }
  CommandResult answer(const Channel::Ends& ends) {
    said.code = ends.code;
    said.err = too_much ? fmt::format("it says more than {} bytes", kMostKept) : ends.words;
    file.close();
    if (!path.empty() && !file) said.code = -1, said.err = path.string() + ": cannot be written";
    if (!greeting.past()) without_an_answer(said, greeting.said());
    return std::move(said);
  }
  fs::path path;
  std::ofstream file;
  bool too_much = false;
  boost::asio::steady_timer timer;
  std::unique_ptr<Channel> channel;
  BannerSkipper greeting;
  CommandResult said;
};

SshShell::SshShell(boost::asio::io_context& io, const SshOptions& options) : io_(io), options_(options) {
  if (const auto folder = control_folder(); !folder.empty()) control_ = folder + "/%C";
}

SshShell::~SshShell() {
  asking_.clear();
  for (const auto& [host, used] : used_) drop(host);
}

std::vector<std::string> SshShell::options() const {
  std::vector<std::string> out;
  for (const char* each :
       {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3",
        "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "EscapeChar=none"})
    out.insert(out.end(), {"-o", each});
  if (!control_.empty())
    out.insert(out.end(),
               {"-o", "ControlMaster=auto", "-o", "ControlPath=" + control_, "-o", "ControlPersist=30"});
  if (!options_.config->empty()) out.insert(out.end(), {"-F", *options_.config});
  if (!options_.user->empty()) out.insert(out.end(), {"-l", *options_.user});
  if (options_.port.stated) out.insert(out.end(), {"-p", std::to_string(*options_.port)});
  return out;
}

// The login shell there may be any: it starts /bin/sh for the line. It may print anything at its start: the
// mark comes after.
std::vector<std::string> SshShell::words(const std::string& host, const std::string& line) const {
  std::vector<std::string> out = {"ssh", "-T"};
  for (auto& word : options()) out.push_back(std::move(word));
  const std::string_view mark = BannerSkipper::kMark;
  const auto marked = fmt::format("echo '{}'; {}", mark.substr(0, mark.size() - 1), line);
  out.insert(out.end(), {"--", host, "exec /bin/sh -c " + shell_word(marked)});
  return out;
}

awaitable<SshShell::CommandResult> SshShell::ask(std::string host, std::string line, std::string input,
                                                 double limit_s, fs::path into) {
  used_[host] = true;
  const auto at = asking_.insert(asking_.end(), std::make_shared<Asking>(io_));
  if (!into.empty()) (*at)->file.open((*at)->path = into, std::ios::binary | std::ios::trunc);
  const auto ends = co_await (*at)->run(io_, words(host, line), std::move(input), limit_s);
  const auto asking = std::move(*at);
  asking_.erase(at);
  co_return asking->answer(ends);
}

std::string remote_word(const std::string& path) {
  if (path == "~") return "\"$HOME\"";
  return path.starts_with("~/") ? "\"$HOME\"" + shell_word(path.substr(1)) : shell_word(path);
}

std::string remote_path(const std::string& path, const std::string& home) {
  return (path == "~" || path.starts_with("~/")) && !home.empty() ? home + path.substr(1) : path;
}

void SshShell::drop(const std::string& host) {
  if (control_.empty()) return;
  std::vector<std::string> words = options();
  // Commands of other runs, which use the same connection, go on.
  words.insert(words.end(), {"-O", "stop", "--", host});
  words.insert(words.begin(), {"ssh", "-q"});
  (void)capture("/usr/bin/env", words, kForMasters);  // a failure means that there is no connection to end
}

}  // namespace sweep::launch
