// SshShell: runs commands on one host over one shared connection (ControlMaster). It never asks a question:
// ssh checks host keys as its configuration says, and what would need an answer fails. It knows nothing of
// allocations.
#pragma once
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/launch/ssh/channel.h"
#include "orchestrator/launch/ssh/ssh_options.h"
#include "runtime/coroutine.h"

namespace boost::asio {
class io_context;
}

namespace sweep::launch {

class SshShell {
 public:
  SshShell(boost::asio::io_context& io, const SshOptions& options);
  ~SshShell();  // drops the shared connections

  struct CommandResult {
    int code = -1;  // the exit code; 255: ssh itself failed; -1: it was ended
    bool timed_out = false;
    std::string out, err;
  };
  // Runs a line of /bin/sh there. Its output is written `into` a file as it comes, or kept; with more than
  // kMostKept bytes to keep, the command is ended. A coroutine that waits here does not go on after the destructor.
  awaitable<CommandResult> ask(std::string host, std::string line, std::string input, double limit_s,
                               std::filesystem::path into = {});
  static constexpr std::size_t kMostKept = 16u << 20;
  // The command line of a channel that stays open. Its output is read through a BannerSkipper.
  std::vector<std::string> words(const std::string& host, const std::string& line) const;
  const SshOptions& settings() const { return options_; }
  // Drops the shared connection, which may be dead without knowing: it ends with its last command, and the next one
  // makes a new one.
  void drop(const std::string& host);

 private:
  std::vector<std::string> options() const;
  struct Asking;
  boost::asio::io_context& io_;
  const SshOptions options_;
  std::string control_;  // ControlPath
  std::map<std::string, bool> used_;
  std::list<std::shared_ptr<Asking>> asking_;
};

// A path on a host, where `~/` at the beginning is the home folder: as its shell takes it, and with the home
// filled in.
std::string remote_word(const std::string& path);
std::string remote_path(const std::string& path, const std::string& home);

}  // namespace sweep::launch
