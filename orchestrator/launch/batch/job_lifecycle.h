// JobLifecycle: the state of one batch job (batch_state.h) and what follows from a change of it: its end is
// reported once, its agent is told to end, the job is cancelled. It has the job's request, identity and
// mailbox. What the scheduler and the agent say is read by JobStatusReader, JobSubmission and JobMail.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "orchestrator/launch/batch/batch_state.h"
#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/spool_mailbox.h"

namespace sweep::launch {

// A launcher as its batch jobs use it: the scheduler, a clock, and a way to report events.
class BatchHost {
 public:
  virtual ~BatchHost() = default;
  virtual Scheduler& scheduler() = 0;
  virtual void report(const Event&) = 0;
  // Query the scheduler soon: something changed.
  virtual void poll_soon() = 0;
  virtual double now_s() const = 0;  // steady clock
  // Starts a coroutine on the event loop. It may begin to run after the host is gone.
  virtual void start(awaitable<void>) = 0;
};

// How a job ended, as the run loop is told.
struct BatchOutcome {
  std::string reason;
  bool lost = false, preempted = false;
};

// A job is recognised by its name and, once known, its number (not by its time of submission: Slurm changes
// that when it starts the job again).
struct JobIdentity {
  std::optional<i64> number{};
  bool adopted = false;  // an earlier process submitted it
};

// The scheduler's statements about the job so far.
struct JobSightings {
  std::string nodes{};
  std::optional<double> seconds_left{};
  bool had_nodes = false;
  std::optional<double> over_since_s{};  // since then it says that the job has ended
};

class JobLifecycle : public std::enable_shared_from_this<JobLifecycle> {
 public:
  JobLifecycle(BatchHost& host, AllocationRequest request);

  // Every change of state is made here.
  void handle(BatchJobEvent, BatchOutcome = {});
  // Its end is reported when the scheduler has released the job: a run that ends then must leave no job in
  // the queue.
  void give_up(BatchOutcome);
  // Has the job cancelled; one without a number as soon as that is known. This alone changes no state.
  void cancel();
  bool cancel_wanted() const { return cancel_ != Cancel::kNotWanted; }

  Expected<i64> post(std::string_view kind, const nlohmann::json& body);
  // Reports a notice that differs from the last one.
  void remark(std::string text);
  // Written before the submission, so that one cut off by a crash is looked for by its name.
  Expected<void> keep_record() const;
  // Why it has been in the queue for too long; nullopt: it has not.
  std::optional<std::string> waits_too_long() const;

  std::string title() const;  // "Slurm job 17"
  JobKey key() const;
  BatchJobState state() const { return state_; }
  bool ended() const { return has_ended(state_); }
  bool closed() const { return state_ == BatchJobState::kClosed; }

  BatchHost& host() const { return host_; }
  AllocationRequest& request() { return request_; }
  SpoolMailbox& mail() { return mail_; }
  JobIdentity& identity() { return identity_; }
  JobSightings& seen() { return seen_; }

 private:
  enum class Cancel { kNotWanted, kWanted, kUnderWay };

  void dismiss();
  awaitable<void> order_cancel(std::shared_ptr<JobLifecycle>);

  BatchHost& host_;
  AllocationRequest request_;
  SpoolMailbox mail_;
  JobIdentity identity_;
  JobSightings seen_;
  BatchJobState state_ = BatchJobState::kSubmitting;
  Cancel cancel_ = Cancel::kNotWanted;
  // Decided on the way into kCancelling; reported on the way out.
  BatchOutcome decided_;
  bool dismissed_ = false;  // the inbox tells its agent to end
  std::string remarked_;
  const double born_s_;
};

}  // namespace sweep::launch
