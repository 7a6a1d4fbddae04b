// SweepDriver: one sweep of one database that this process runs. It opens the database, takes the lease,
// stores the plan, runs what is pending and releases the lease; its destructor releases a lease that is still
// held. It prints nothing. REQUIRES: a sweep was chosen, by make() or use(), before anything but store() and
// db() is called.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/observer.h"
#include "orchestrator/run/run_sweep.h"
#include "orchestrator/store/store.h"

namespace sweep::driver {

// The part of a drive that failed.
enum class DriveProblem {
  kDatabase,   // it cannot be read or written
  kBusy,       // another process holds the lease
  kLauncher,   // the launcher cannot be made: its settings, a program that is missing
  kRun,        // the run loop gave up
  kLeaseLost,  // another process took the lease over during the run
};
struct DriveError {
  DriveProblem problem = DriveProblem::kDatabase;
  Error error;
  Holder holder{};  // the holder, if kBusy
};
template <class T>
using Driven = tl::expected<T, DriveError>;

// How a run ended.
struct RunReport {
  run::RunEnd end;
  // The hosts of each allocation that started in this run, by node, as the launcher names them; empty: it
  // names none.
  std::map<std::string, std::vector<std::string>> hosts;
};

// The answer of a command that ran or watched a sweep.
enum class Finish {
  kAnswered,     // every trial has an answer
  kUnanswered,   // some have none
  kInterrupted,  // a signal ended it
};

// Error: its results were imported. New ones would take the place of what was measured elsewhere.
Expected<void> check_may_run(const store::SweepRow&);

class SweepDriver {
 public:
  // Makes the database and its folder where they are not there.
  static Expected<SweepDriver> open(const std::filesystem::path& db, store::StoreDependencies = {});
  SweepDriver(std::unique_ptr<store::Store>, const std::filesystem::path& db);
  SweepDriver(SweepDriver&&) noexcept;
  SweepDriver& operator=(SweepDriver&&) = delete;
  ~SweepDriver();

  store::Store& store() { return *store_; }
  const std::filesystem::path& db() const { return db_; }
  const store::SweepRow& sweep() const { return sweep_; }

  // The sweep of this name: makes it, or updates it unless another process runs it. Refused: an imported one.
  Expected<void> make(const store::SweepRow& wanted);
  // One that is there.
  void use(store::SweepRow sweep);

  using TakeLease = std::function<Expected<Holder>(store::Store&, const store::SweepRow&)>;
  // Returns the holder that keeps us from the lease; none: the lease is taken now, or was held already.
  // `take` decides what to do about a holder that does not answer; without it the answer is the database's
  // own. Refused: an imported sweep.
  Expected<Holder> take_lease(const TakeLease& take = {});
  Expected<void> release_lease();

  // REQUIRES the lease, from here on.
  Expected<store::SyncCounts> sync_plan(std::span<const PlanEntry>, const MeasurePlan&);
  // Keeps this limit in the place of the sweep's own, one in USD too.
  Expected<void> keep_gpu_hours(double);
  // Runs what is pending, by the options that the sweep has kept, and releases the lease; it keeps the lease
  // where the next start of this Slurm job goes on (run::End::kLeft).
  Driven<RunReport> run(const LaunchChoice&, const LaunchRequest&, const MakeObserver&);
  // The same with settings and a launcher of the caller's.
  Driven<RunReport> run(const run::Settings&, const run::MakeLauncher&, run::Observer&);

  Expected<Finish> finish(const run::RunEnd&);

 private:
  Expected<run::Settings> settings() const;
  Driven<RunReport> run_with(const LaunchChoice&, const LaunchRequest&, const MakeObserver&);
  Driven<RunReport> loop(const run::Settings&, const run::MakeLauncher&, run::Observer&);
  Driven<RunReport> released(Driven<RunReport>);

  std::unique_ptr<store::Store> store_;
  std::filesystem::path db_;
  store::SweepRow sweep_;
  bool held_ = false;
};

// One run from the lease to its release; if another process holds the lease, it is not watched.
struct LeasedRun {
  std::span<const PlanEntry> plan;
  MeasurePlan measure;
  std::vector<Outcome> reopen{};  // trials with these outcomes are run again
  // The plan is added to what is there: earlier trials that have an answer stay in it and are not run again.
  bool adds = false;
};
// Takes the lease, stores the plan, reopens, and runs by `run`. kBusy: another process holds the lease.
Driven<RunReport> run_with_lease(SweepDriver&, const LeasedRun&,
                                 const std::function<Driven<RunReport>(SweepDriver&)>& run);

// Whether a command can do its own work once the run that it watched has ended.
enum class OwnWork {
  kNone,     // the sweep had it already
  kNow,      // every trial of the sweep is final: it can be done
  kBlocked,  // a run that was stopped left trials: a person decides what goes on
};
// `plan`: trials that the command wants in the sweep; none: those that it has. `changes`: it runs answered trials again, or sets a limit.
Expected<OwnWork> own_work(store::Store&, i64 sweep, std::span<const PlanEntry> plan, bool changes);

// Every outcome that a trial can be run again for.
std::vector<Outcome> outcomes_of_runs();

}  // namespace sweep::driver
