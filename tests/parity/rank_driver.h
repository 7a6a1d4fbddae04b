// Starts sweep-rank as an agent would, by exec or through its zygote, and reads the records back. It plays
// the agent's part: subreaper, progress pages, rendezvous folder; it decides nothing about the outcome.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/attempt.h"
#include "schema/progress.h"
#include "schema/rank_launch.h"
#include "schema/records.h"

namespace sweep::testing {

// A folder that goes with its owner.
class Folder {
 public:
  explicit Folder(const std::string& parent);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One attempt's folders, as an agent lays them out.
class AttemptFiles {
 public:
  explicit AttemptFiles(const Attempt&);
  RankLaunch launch(i64 rank) const;
  Expected<RankRecord> record(i64 rank) const;
  std::string log(i64 rank) const;
  // The rank's heartbeat, read from its page.
  std::uint64_t steps_begun(i64 rank) const;

 private:
  Attempt attempt_;
  Folder spool_, rendezvous_;
};

// A running `sweep-rank zygote`.
class ZygoteProcess {
 public:
  ZygoteProcess();
  ~ZygoteProcess();
  ZygoteProcess(const ZygoteProcess&) = delete;
  ZygoteProcess& operator=(const ZygoteProcess&) = delete;
  Expected<pid_t> start(const RankLaunch&);
  std::string ask(const std::string& message);  // one raw request, its raw answer
  int close_and_wait();                         // exit status as waitpid gives it

 private:
  int channel_ = -1;
  pid_t pid_ = 0;
};

pid_t start_by_exec(const RankLaunch&);
int wait_for(pid_t);  // exit status as waitpid gives it

// Runs all ranks to their end; every one must exit 0 and leave a record. Throws std::runtime_error otherwise.
std::vector<RankRecord> run_by_exec(const Attempt&);
std::vector<RankRecord> run_by_zygote(const Attempt&, ZygoteProcess&);

struct Output {
  int status = 0;
  std::string out, err;
};
// Runs `sweep-rank <arguments>` with that standard input.
Output run_program(const std::vector<std::string>& arguments, const std::string& input = "");

// A small model and two timed steps; dp ranks on this machine's CPU.
Attempt small_attempt(i64 dp);

// The peak of the trial's fullest rank, in bytes, as `sweep-rank dry-run` tells it for a CPU.
i64 dry_run_peak(const Trial&);

}  // namespace sweep::testing
