// TrainerStacks: what a rank's trainer does at this moment, for the evidence of a hang. The agent asks through
// the pipe at which any rank may wait (spool.h, flight_request); the answer is the stacks of the trainer's
// threads, by py-spy where it is installed, else by the module that trainers report with, and PyTorch's flight
// recorder. Nothing of it fails the trial: what cannot be read is left out, with the reason.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/files.h"
#include "schema/rank_launch.h"

namespace sweep::command {

// The pipe at which the report module of a rank waits. `rank`: its number, or {rank} to be replaced by it.
std::filesystem::path stacks_pipe(const RankLaunch&, std::string_view rank);

class TrainerStacks {
 public:
  // Pipes that cannot be made leave the rank without an answer.
  explicit TrainerStacks(const RankLaunch&);

  // Answers the agent if it has asked since the last call; that takes seconds.
  void answer_requests();

 private:
  void answer();
  std::string by_py_spy() const;
  // False: the module did not answer in time, or the trainer does not use it.
  bool ask_module() const;
  std::filesystem::path said(const char* what) const;

  RankLaunch launch_;
  Descriptor requests_;
};

// The Python process of a rank: it carries this process's mark and the rank's number, and its parent does not
// (data loader workers inherit both). nullopt: there is none.
struct PythonProcess {
  pid_t pid = 0;
  std::string path;     // PATH of its environment
  std::string program;  // the first word of its command line
};
std::optional<PythonProcess> python_of(i64 rank);

}  // namespace sweep::command
