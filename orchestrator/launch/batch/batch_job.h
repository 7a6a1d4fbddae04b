// BatchJob: one allocation that is a job of a batch system: its submission, what the scheduler says of it, its mailbox,
// its end. States and transitions are in batch_state.h. It is told facts, and asks its Scheduler only to submit and to
// cancel. A job is recognised by its name and, once known, its number (not by its time of submission: Slurm changes that
// when it starts the job again). Two answers in a row must deny the job before it counts as gone.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/batch/batch_state.h"
#include "orchestrator/launch/batch/scheduler.h"
#include "orchestrator/launch/spool_mailbox.h"

namespace sweep::launch {

// What a job needs of its launcher.
struct BatchContext {
  Scheduler& scheduler;
  Launcher::Sink say;
  std::function<void()> poll_soon;  // query the scheduler soon: something changed
  std::function<double()> now_s;    // steady
};

// How a job ended, as the run loop is told.
struct BatchOutcome {
  std::string reason;
  bool lost = false, preempted = false;
};

class BatchJob : public std::enable_shared_from_this<BatchJob> {
 public:
  BatchJob(BatchContext& context, AllocationRequest request);

  Expected<void> submit();
  // Takes over a job of an earlier process, as its record says. False: it was never about to be submitted.
  Expected<bool> take_up();

  Expected<i64> post(std::string_view kind, const nlohmann::json& body);
  Expected<void> finish(bool now);
  void acknowledge(std::uint64_t offset) { mail_.acknowledge(offset); }
  void kill();
  // Reads the outbox and delivers what is new.
  void look();
  // One query was answered: every job of this name; `denied`: the scheduler was asked for its number and knows none
  // such (or, without a number, was asked everywhere by name).
  void learn(const std::vector<JobStatus>& of_this_name, bool denied);
  // False: another job that has the same name.
  bool is_this(const JobStatus&) const;
  // No further event; the job lives on.
  void abandon();

  const AllocationRequest& request() const { return request_; }
  JobKey key() const { return {context_.scheduler.job_name(request_.id), number_, adopted_}; }
  BatchJobState state() const { return state_; }
  bool ended() const { return has_ended(state_); }
  bool closed() const { return state_ == BatchJobState::kClosed; }
  // Whether the scheduler said once that it has its nodes.
  bool had_nodes() const { return had_nodes_; }

 private:
  enum class Cancel { kNotWanted, kWanted, kUnderWay };

  void handle(BatchJobEvent, BatchOutcome = {});
  void send();
  void submit_again();
  void answered(const SubmitAnswer&);
  void accept(i64 number);
  void wait_for_room(const std::string& why);
  void look_for_room();
  void look_for_folder();
  void hear_farewell();
  void missing();
  void apply(const JobStatus&);
  void waits(const JobStatus&);
  void over(const JobStatus&);
  void started();
  void give_up(std::string reason, bool lost, bool preempted);
  void dismiss();
  void remark(std::string text);
  std::optional<std::string> waits_too_long() const;
  Expected<void> keep_record() const;
  std::string title() const;

  BatchContext& context_;
  AllocationRequest request_;
  SpoolMailbox mail_;
  BatchJobState state_ = BatchJobState::kSubmitting;

  std::optional<i64> number_;
  std::string nodes_;
  std::optional<double> seconds_left_;
  // Answers in a row that knew no such job.
  int denied_ = 0;
  int submissions_ = 0;
  Cancel cancel_ = Cancel::kNotWanted;
  // Decided on the way into kCancelling; told on the way out.
  BatchOutcome decided_;
  std::string remarked_;

  // Facts beside the state: each once true stays true.
  bool adopted_ = false;      // an earlier process submitted it
  bool agent_spoke_ = false;  // Started was told
  bool had_nodes_ = false;
  bool dismissed_ = false;  // the inbox tells its agent to end

  const double born_s_;
  std::optional<double> farewell_at_s_;
  std::optional<double> over_since_s_;      // the scheduler says that it has ended
  std::optional<double> hopeless_since_s_;  // it cannot start, for the reason that the scheduler gives
  std::optional<double> folder_gone_since_s_;
  std::optional<double> submit_again_at_s_;  // in kWaitingForRoom
  double room_pause_s_ = 15;                 // before the next submission then; doubles
};

}  // namespace sweep::launch
