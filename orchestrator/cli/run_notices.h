// RunNotices: --notify and --notify-command: tells of a run's first failure, of hosts that get no more work, and of its
// end. A notice that cannot be delivered is a line on standard error; the run goes on.
#pragma once
#include <memory>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/observer.h"
#include "orchestrator/export/notify.h"
#include "orchestrator/run/run_sweep.h"

namespace sweep::cli {

void add_notify(CLI::App&, exports::NotifyTargets&);
// Error: no address, or a notice that nobody would send: the run of a job takes them from its environment, not from words.
Expected<void> check_notify(const exports::NotifyTargets&, bool as_job);

class RunNotices {
 public:
  RunNotices(Io& io, exports::NotifyTargets targets, std::filesystem::path db);

  // The observer of `inner`, and the notices of what it is told.
  driver::MakeObserver with(driver::MakeObserver inner);
  // An error ends a run too: it is End::kBroken.
  void ended(store::Store&, const store::SweepRow&, const run::RunEnd&);

 private:
  std::filesystem::path db_;
  std::shared_ptr<exports::Notifier> notifier_;  // null: nobody is told
};

}  // namespace sweep::cli
