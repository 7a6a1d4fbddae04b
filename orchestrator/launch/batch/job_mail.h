// JobMail: reads the outbox of a batch job: reports that its agent has started, and what is new; notices its
// agent's last message, and that its folder is gone.
#pragma once
#include <memory>
#include <optional>

#include "orchestrator/launch/batch/job_lifecycle.h"

namespace sweep::launch {

class JobMail {
 public:
  explicit JobMail(std::shared_ptr<JobLifecycle> job) : job_(std::move(job)) {}

  // Reads the outbox and reports what is new.
  void look();
  // While a submission is under way nothing is concluded: its answer comes soon, and this is called again
  // then.
  void look_for_last_message();
  bool agent_spoke() const { return agent_spoke_; }
  // The log's end of a job that ended without a word of its agent, to follow a sentence; empty: its agent spoke.
  std::string last_of_log() const;
  std::optional<double> last_message_at_s() const { return last_message_at_s_; }

 private:
  void look_for_folder();
  void look_for_silence(bool any);
  void report_start();

  std::shared_ptr<JobLifecycle> job_;
  bool agent_spoke_ = false;  // Started was reported
  std::optional<double> last_message_at_s_;
  std::optional<double> folder_gone_since_s_;
  // When it last said something; the longest that it was silent before it spoke again; whether the scheduler was asked
  // because it is silent now.
  double spoke_at_s_ = 0, longest_silence_s_ = 0;
  bool asked_of_silence_ = false;
};

}  // namespace sweep::launch
