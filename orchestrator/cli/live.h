// Live: the progress of a run on standard error: one line that redraws on a terminal, plain lines otherwise.
#pragma once
#include <chrono>
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/run/observer.h"

namespace sweep::cli {

class Live : public run::Observer {
 public:
  Live(Io& io, std::string sweep, bool quiet) : io_(io), sweep_(std::move(sweep)), quiet_(quiet) {}
  void on_note(const std::string& sentence) override;
  void on_result(const PlanEntry&, const Result&) override;
  void on_snapshot(const run::Snapshot&) override;
  void close();  // the last picture, on a line of its own

 private:
  void clear_line();
  Io& io_;
  std::string sweep_;
  bool quiet_, drawn_ = false;
  std::optional<run::Snapshot> last_;
  std::chrono::steady_clock::time_point said_{};
};

}  // namespace sweep::cli
