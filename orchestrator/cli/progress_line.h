// ProgressLine: the progress of a run on standard error: one line that redraws on a terminal, plain lines
// otherwise.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/observer.h"
#include "orchestrator/run/observer.h"

namespace sweep::cli {

class ProgressLine : public run::Observer {
 public:
  // `shown`: the axes that vary in the sweep.
  ProgressLine(Io& io, store::SweepRow sweep, std::vector<answers::Field> shown, bool quiet)
      : io_(io), sweep_(std::move(sweep)), shown_(std::move(shown)), quiet_(quiet) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() override { close(); }
  void on_note(const std::string& sentence) override;
  void on_result(const PlanEntry&, const Result&) override;
  void on_snapshot(const run::Snapshot&) override;
  void close();  // the last snapshot, on a line of its own

 private:
  void clear_line();
  Io& io_;
  store::SweepRow sweep_;
  std::vector<answers::Field> shown_;
  bool quiet_, drawn_ = false, unsaid_ = false;
  std::optional<run::Snapshot> last_;
  std::chrono::steady_clock::time_point said_{};
  std::string line_;  // said then
};

// Gives each run a progress line.
driver::MakeObserver progress_lines(Io&, bool quiet);

}  // namespace sweep::cli
