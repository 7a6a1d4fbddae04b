// Observers of runs that the driver starts for commands.
#pragma once
#include <functional>
#include <memory>

#include "base/expected.h"
#include "orchestrator/run/observer.h"

namespace sweep::driver {

// Makes the view of a run for people, once its sweep and its plan are stored.
using MakeObserver =
    std::function<Expected<std::unique_ptr<run::Observer>>(store::Store&, const store::SweepRow&)>;

// The observer of a run that no person watches.
class QuietObserver final : public run::Observer {
 public:
  void on_note(const std::string&) override {}
  void on_result(const PlanEntry&, const Result&) override {}
  void on_snapshot(const run::Snapshot&) override {}
};

}  // namespace sweep::driver
