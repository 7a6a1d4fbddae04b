#include "orchestrator/export/deliver.h"

#include <fmt/format.h>

#include "base/expected.h"

namespace sweep::exports {
namespace {

constexpr int kMostRefusedInARow = 5;

// One export: opens the tracker when there is first something to send.
class Round {
 public:
  Round(Tracker& tracker, Journal& journal, const TrackerSweep& sweep, const DeliveryPlan& plan)
      : tracker_(tracker), journal_(journal), sweep_(sweep), plan_(plan), place_(tracker.place()) {}

  // False: stop here.
  Expected<bool> give(const TrackerRun& run) {
    const auto before = plan_.again ? std::nullopt : journal_.find(place_, run.id);
    const std::string digest = tracker_.digest(run);
    if (before && before->digest == digest) {
      ++done.unchanged;
      return true;
    }
    if (!ready()) return false;
    const auto remote = tracker_.deliver(run, before);
    if (!remote) return go_on_after(remote.error());
    refused_in_a_row_ = 0;
    SWEEP_TRY(journal_.add(place_, run.id, {*remote, digest}));
    ++(before ? done.updated : done.sent);
    return true;
  }

  Expected<void> finish() {
    const auto before = plan_.again ? std::nullopt : journal_.find(place_, sweep_.id);
    const std::string digest = tracker_.digest(sweep_);
    if (done.stopped_by || (!opened_ && before && before->digest == digest)) return {};
    if (!ready()) return {};
    const auto remote = tracker_.close(sweep_);
    if (!remote) {
      go_on_after(remote.error());
      return {};
    }
    return journal_.add(place_, sweep_.id, {*remote, digest});
  }

  Deliveries done;

 private:
  bool ready() {
    if (opened_) return true;
    const auto opened = tracker_.open(sweep_, plan_.again ? std::nullopt : journal_.find(place_, sweep_.id));
    if (!opened) done.stopped_by = opened.error();
    return opened_ = opened.has_value();
  }

  bool go_on_after(const DeliveryError& trouble) {
    if (trouble.kind == DeliveryError::kThisRun) {
      done.refused.push_back(trouble.sentence);
      if (++refused_in_a_row_ < kMostRefusedInARow) return true;
      done.stopped_by = DeliveryError{
          DeliveryError::kAll,
          fmt::format("{} were refused one after another; the rest is not tried", kMostRefusedInARow)};
      return false;
    }
    done.stopped_by = trouble;
    return false;
  }

  Tracker& tracker_;
  Journal& journal_;
  const TrackerSweep& sweep_;
  const DeliveryPlan& plan_;
  std::string place_;
  bool opened_ = false;
  int refused_in_a_row_ = 0;
};

}  // namespace

Expected<Deliveries> deliver(Tracker& tracker, Journal& journal, const TrackerSweep& sweep,
                             const DeliveryPlan& plan) {
  Round round(tracker, journal, sweep, plan);
  for (i64 i = 0; i < plan.runs; ++i) {
    if (plan.interrupted()) {
      round.done.stopped_by = DeliveryError{DeliveryError::kInterrupted, "interrupted"};
      break;
    }
    SWEEP_GET(const auto run, plan.run(i));
    SWEEP_GET(const auto go_on, round.give(run));
    if (!go_on) break;
    plan.progress(round.done, i);
  }
  SWEEP_TRY(round.finish());
  return std::move(round.done);
}

}  // namespace sweep::exports
