// Board: all that is known of a running sweep on standard output: drawn over itself on a terminal, one plain
// line for each change otherwise.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/answers/progress.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/run/observer.h"

namespace sweep::cli {

class StatusBoard : public run::Observer {
 public:
  StatusBoard(Io& io, store::Store& store, store::SweepRow sweep, std::vector<answers::Field> shown)
      : io_(io), store_(store), sweep_(std::move(sweep)), shown_(std::move(shown)) {}
  void on_note(const std::string&) override {}
  void on_result(const PlanEntry&, const Result&) override {}
  void on_snapshot(const run::Snapshot&) override;

 private:
  void draw(const std::string& block, std::size_t rows);
  Io& io_;
  store::Store& store_;
  store::SweepRow sweep_;
  std::vector<answers::Field> shown_;
  std::size_t drawn_ = 0;  // lines
  std::string said_;
};

}  // namespace sweep::cli
