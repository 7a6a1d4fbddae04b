// Scheduler: what a batch job needs of a batch system: submit, cancel, query, and to read its answers. Slurm
// is one (slurm_scheduler.h). It keeps no job: states and decisions are BatchJob's. REQUIRES: a coroutine is awaited
// while the object lives; it goes on from the event loop, and not after the destructor.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "orchestrator/launch/batch/job_phase.h"
#include "orchestrator/launch/launcher.h"
#include "runtime/coroutine.h"

namespace sweep::launch {

// How a job is looked for: by its name and, once known, its number.
struct JobKey {
  std::string name;
  std::optional<i64> number{};
  bool adopted = false;  // an earlier process submitted it
};

// The scheduler's answer about one job.
struct JobStatus {
  enum class Wait {
    kUsual,       // its turn has not come
    kNoteworthy,  // a reason that people should read
    kHopeless,    // waiting does not help: the request fits nothing, or is held
  };
  i64 number = 0;
  std::string name;
  Phase phase = Phase::kUnknown;
  Blame blame = Blame::kNone;
  Wait wait = Wait::kUsual;              // reason why a pending job waits
  std::string state, reason;             // the scheduler's words, for messages only; reason: empty for none
  std::string nodes;                     // its nodes, as the scheduler writes them
  std::optional<double> seconds_left{};  // seconds until its time limit
};

struct SubmitAnswer {
  enum class Kind {
    kAccepted,
    kUnanswered,  // it may have been submitted or not
    kNoRoom,      // refused: this user has as many jobs as allowed
    kRefused,     // refused for good
    kStepOver,    // a step of an existing job has ended
  };
  Kind kind = Kind::kUnanswered;
  std::optional<i64> number{};  // set with kAccepted
  std::string text;             // a sentence for people, where it is not kAccepted
};

// The answer to one query about several jobs.
struct QueryAnswer {
  std::map<std::string, std::vector<JobStatus>> jobs;  // key: job name
  std::vector<std::string> denied;                     // names that the scheduler says it does not know
};

class Scheduler {
 public:
  // Called for each single command that a query takes: their rate is limited.
  using Counted = std::function<void()>;

  virtual ~Scheduler() = default;
  virtual std::string_view name() const = 0;    // name for people: "Slurm"
  virtual std::string_view record() const = 0;  // name in allocation records: "slurm"

  // Writes what the submission needs into the spool.
  virtual Expected<void> prepare(const AllocationRequest&) = 0;
  // A step of an existing job is answered when it has ended, by kStepOver.
  virtual awaitable<SubmitAnswer> submit(AllocationRequest) = 0;
  // Whether the command worked. The job may go on for a while.
  virtual awaitable<bool> cancel(JobKey) = 0;
  // Error: no clear answer; nothing is concluded from it.
  virtual awaitable<Expected<QueryAnswer>> query(std::vector<JobKey>, Counted) = 0;

  // Number of the job whose steps are started instead of jobs. nullopt: jobs of our own.
  virtual std::optional<i64> existing_job() const { return std::nullopt; }
  // Whether such a job, of an earlier run, has ended or is no longer known. It waits for the answer: it is asked before
  // the event loop runs. Error: no clear answer.
  virtual Expected<bool> is_over(i64 job) const {
    (void)job;
    return false;
  }
  // The longest that a job may wait in the queue.
  virtual std::optional<double> longest_wait_s() const { return std::nullopt; }
  // How long the agent may use an allocation that the scheduler gives `left` seconds more. nullopt: without
  // limit.
  virtual std::optional<double> usable_s(const AllocationRequest&, std::optional<double> left) const = 0;

  // Counts the idle nodes, if it is time to; whether they were counted.
  virtual awaitable<bool> count_idle(Counted) = 0;
  virtual i64 idle_nodes(const std::string& hardware) const = 0;
};

}  // namespace sweep::launch
