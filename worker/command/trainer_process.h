// TrainerProcess: the program of a command as a child of this rank.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/attempt.h"
#include "schema/command_spec.h"
#include "schema/rank_launch.h"
#include "worker/command/meeting.h"

namespace sweep::command {

// Folder of the command's files, and the results file of a rank, in the attempt's folder.
std::filesystem::path files_folder(const RankLaunch&);
std::filesystem::path results_file(const RankLaunch&, i64 rank);

// The program to start, with its environment and files.
struct Prepared {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // set on top of this process's own
  std::string folder;
};
// Fills the rank's names in, and writes the files of a rank that starts its node's command. Error: a name
// without a value, a file that cannot be written, a folder that is not there.
Expected<Prepared> prepare(const CommandSpec&, const Attempt&, const RankLaunch&, const Meeting&);

class TrainerProcess {
 public:
  // Starts it in this process's group, with standard output and error as they are. It dies with this process.
  static Expected<TrainerProcess> start(const Prepared&);
  TrainerProcess(TrainerProcess&&) noexcept;
  TrainerProcess& operator=(TrainerProcess&&) = delete;
  ~TrainerProcess();  // ends it with SIGKILL if it still runs

  pid_t pid() const { return pid_; }
  // Readable once it has ended.
  int handle() const { return handle_; }
  struct End {
    std::optional<int> exit_code, signal;
    i64 peak_rss_bytes = 0;  // the largest of the process and the children it waited for
  };
  // Waits at most so long; none: it still runs.
  std::optional<End> wait_ms(int milliseconds);
  void send(int signal) const;

 private:
  TrainerProcess(pid_t pid, int handle) : pid_(pid), handle_(handle) {}
  pid_t pid_ = -1;
  int handle_ = -1;  // a pidfd: readable once it has ended
  std::optional<End> end_;
};

// Python modules that travel inside the agent.
std::string_view report_module();  // python/sweep_trial.py, which trainers report with
std::string_view roles_module();   // roles.py, by which a rank stands for those of its pipeline stage

}  // namespace sweep::command
