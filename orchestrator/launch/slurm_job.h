// SlurmJob: one allocation that is a Slurm job: its submission, what Slurm says of it, its mailbox, its end. It
// is told facts and asks nothing by itself but sbatch and scancel. A job is ours by its name and, once known,
// its number (not its time of submission: Slurm changes that when it starts the job again); an answer without it
// concludes nothing until Slurm denies it twice.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm_options.h"
#include "orchestrator/launch/slurm_script.h"
#include "orchestrator/launch/slurm_state.h"
#include "orchestrator/launch/spool_mailbox.h"

namespace sweep::launch {

// What a job needs of its launcher.
struct SlurmSurroundings {
  Commands& commands;
  SlurmOptions options;
  Programs programs;
  Launcher::Sink say;
  std::function<void()> hurry;    // ask Slurm soon: something changed
  std::function<double()> now_s;  // steady
};

class SlurmJob : public std::enable_shared_from_this<SlurmJob> {
 public:
  SlurmJob(SlurmSurroundings& around, AllocationRequest request);

  Expected<void> submit();
  // Of an earlier process, as its record says. False: it was never about to be submitted.
  Expected<bool> take_up();

  Expected<i64> post(std::string_view kind, const nlohmann::json& body);
  Expected<void> finish(bool now);
  void acknowledge(std::uint64_t offset) { mail_.acknowledge(offset); }
  void kill();
  void look();  // into the outbox
  // One round of questions was answered: every job of this name; `denied`: Slurm was asked for its number and
  // knows none such (or, without a number, was asked everywhere by name).
  void learn(const std::vector<JobFacts>& of_this_name, bool denied);
  bool is_this(const JobFacts&) const;  // not another one that has its name

  const AllocationRequest& request() const { return request_; }
  std::string name() const { return slurm_job_name(request_.id); }
  std::optional<i64> number() const { return job_; }
  bool ended() const { return ended_; }
  bool adopted() const { return adopted_; }
  bool runs() const { return runs_; }      // has its nodes, by Slurm's word
  bool closed() const { return closed_; }  // nothing more to ask about
  void abandon();                          // says nothing any more; the job lives on

 private:
  void send();
  void send_step();
  void cancel_step();
  void dismiss();
  void answered(const CommandResult&);
  void wait_for_room(const std::string& why);
  void look_for_room();
  std::optional<std::string> waits_too_long() const;
  void accept(i64 job);
  void apply(const JobFacts&);
  void waits(const JobFacts&);
  void missing();
  void started();
  void look_for_folder();
  void give_up(std::string reason, bool lost, bool preempted);
  void end(std::string reason, bool lost, bool preempted);
  void remark(std::string text);
  Expected<void> keep_record() const;
  Expected<void> write_files() const;

  SlurmSurroundings& around_;
  AllocationRequest request_;
  SpoolMailbox mail_;
  std::optional<i64> job_;
  std::string nodes_, remarked_;
  std::optional<double> seconds_left_;
  double born_s_, said_bye_s_ = 0, hopeless_since_s_ = 0, over_since_s_ = 0;
  double folder_gone_s_ = 0;
  double send_again_s_ = 0,
         room_pause_ = 15;  // where Slurm takes no further job of this user: when to ask again
  int submissions_ = 0, denied_ = 0;
  bool sending_ = false, in_doubt_ = false, cancelling_ = false, cancel_wanted_ = false, dismissed_ = false;
  struct Verdict {
    std::string reason;
    bool lost = false, preempted = false;
  };
  std::optional<Verdict> verdict_;  // said once Slurm has let go of the job
  bool spoke_ = false, runs_ = false, ended_ = false, closed_ = false, adopted_ = false;
};

}  // namespace sweep::launch
