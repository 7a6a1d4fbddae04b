// Board: all that is known of a running sweep on standard output: drawn over itself on a terminal, one plain
// line for each change otherwise.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/progress.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/run/observer.h"

namespace sweep::cli {

answers::Progress progress_of(const store::SweepRow&, const run::Snapshot&);
// Details with the GPU-hours that were set when the sweep was planned, or that the site allows, whichever are fewer.
Expected<answers::RunDetails> details_of(store::Store&, const store::SweepRow&, i64 events);
// A sweep as it is now, with the time that its strategy leaves.
Expected<run::Snapshot> snapshot_of(store::Store&, const store::SweepRow&);
// The document of `status --json` and of the live page, with so many of the newest events.
Expected<nlohmann::json> status_document(store::Store&, const store::SweepRow&, const run::Snapshot&,
                                         i64 events);
// Adds to a picture who runs the sweep, and its details. `shown`: the axes that vary.
Expected<void> add_details(answers::StatusView&, store::Store&, const store::SweepRow&,
                           std::span<const answers::Field> shown);

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
