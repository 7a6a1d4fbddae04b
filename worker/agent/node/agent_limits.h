// AgentLimits: when an agent leaves without being told to: its orchestrator is silent, it has no work, its
// time is over, or its disk stays full; when its mailbox is gone; and when it stops waiting for that disk. It decides; the agent
// acts.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "worker/agent/options.h"

namespace sweep::agent {

class AgentLimits {
 public:
  AgentLimits(const Options& options, double now_s);

  struct Activity {
    // Something runs or waits, or the agent does not serve yet.
    bool busy = false;
    bool out_of_time = false;
    // When the inbox had its last line; nullopt: never.
    std::optional<double> last_line_s;
    // Lines wait in memory, since the disk does not take them.
    bool unwritten = false;
  };
  // Why it has to leave now; nullopt: it goes on. Times are of the steady clock.
  std::optional<std::string> exceeded(const Activity& activity, double now_s);
  // True once: when several looks in a row found no mailbox. A file system may be away for a moment.
  bool mailbox_lost(bool gone);
  // Is called when the disk does not take the lines that wait. True: it failed so often that the agent gives up.
  bool disk_given_up();

 private:
  bool orchestrator_silent(double now_s);

  const Options& options_;
  double contact_s_;
  std::filesystem::file_time_type contact_file_{};
  double busy_s_;
  // Since when lines wait; nullopt: none does.
  std::optional<double> unwritten_s_;
  int ticks_without_mailbox_ = 0;
  int ticks_unwritten_ = 0;
};

}  // namespace sweep::agent
