// Board: all that is known of a running sweep on standard output: drawn over itself on a terminal, one plain
// line for each change otherwise.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/tables/status.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/run/observer.h"

namespace sweep::cli {

// Adds to a picture what the database tells beyond counts: who runs the sweep, its allocations with their
// nodes, the trials under way, the last events. `shown`: the axes that vary.
Expected<void> add_details(answers::StatusView&, store::Store&, const store::SweepRow&, i64 running,
                           const std::vector<answers::Field>& shown);

// An allocation that is held: its hosts, its results so far, the attempts that run in it.
struct AllocationStatus {
  store::AllocationRow row;
  std::vector<std::string> hosts;
  i64 results = 0;
  std::vector<store::AttemptRow> running;
};
Expected<std::vector<AllocationStatus>> allocation_statuses(store::Store&, i64 sweep);

// Of GPU-hours: what was set when the sweep was planned, or what the site allows, whichever is smaller.
std::optional<double> gpu_hour_limit(const store::SweepRow&);

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
