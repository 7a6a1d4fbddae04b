#include "orchestrator/driver/sweep_driver.h"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <utility>

#include "base/expected.h"
#include "orchestrator/driver/doctor_rules.h"
#include "orchestrator/driver/spool_root.h"
#include "orchestrator/run/retry_policy.h"
#include "runtime/own_job.h"
#include "schema/rehearsal.h"
#include "schema/sweep_options.h"

namespace sweep::driver {
namespace {

tl::unexpected<DriveError> failed(DriveProblem problem, Error error) {
  return tl::unexpected(DriveError{problem, std::move(error)});
}

// The launcher, with the hosts of every allocation that starts written down.
run::MakeLauncher noting_hosts(const run::MakeLauncher& make,
                               std::map<std::string, std::vector<std::string>>& hosts) {
  return [&make, &hosts](boost::asio::io_context& io, launch::Launcher::Sink sink) {
    return make(io, [&hosts, sink = std::move(sink)](const launch::Event& event) {
      if (const auto* started = std::get_if<launch::Started>(&event)) hosts[started->id] = started->hosts;
      sink(event);
    });
  };
}

// Joins the entries of the plan that have an answer already and the new ones.
Expected<std::vector<PlanEntry>> added_plan(store::Store& store, i64 sweep,
                                            std::span<const PlanEntry> added) {
  auto out = store.plan(sweep);
  if (!out) return out;
  SWEEP_GET(const auto pending, store.pending(sweep, std::numeric_limits<i64>::max()));
  std::set<std::string> gone;
  for (const auto& each : pending) gone.insert(each.entry.id);
  for (const PlanEntry& each : added) gone.insert(each.id);
  std::erase_if(*out, [&](const PlanEntry& each) { return gone.contains(each.id); });
  out->insert(out->end(), added.begin(), added.end());
  return out;
}

Expected<void> prepare(SweepDriver& driver, const LeasedRun& leased) {
  store::Store& store = driver.store();
  const i64 sweep = driver.sweep().id;
  if (!leased.adds) {
    SWEEP_TRY(driver.sync_plan(leased.plan, leased.measure));
    return leased.reopen.empty() ? Expected<void>() : store.reopen(sweep, leased.reopen);
  }
  SWEEP_GET(const auto plan, added_plan(store, sweep, leased.plan));
  SWEEP_TRY(driver.sync_plan(plan, leased.measure));
  for (const PlanEntry& each : leased.plan) SWEEP_TRY(store.reopen(sweep, leased.reopen, each.id));
  return {};
}

}  // namespace

Expected<void> check_may_run(const store::SweepRow& sweep) {
  if (!sweep.options.imported) return {};
  return fail(
      ErrorKind::kRefused, sweep.name,
      fmt::format("sweep '{0}' was imported: its configurations were measured elsewhere, and runs here "
                  "would hide those results. `sweep best {0} --yaml` gives the best ones as a grid; "
                  "run a grid under another name",
                  sweep.name));
}

Expected<SweepDriver> SweepDriver::open(const std::filesystem::path& db,
                                        store::StoreDependencies dependencies) {
  std::error_code ignored;  // opening the database says what is wrong with its folder
  std::filesystem::create_directories(std::filesystem::absolute(db).parent_path(), ignored);
  if (!dependencies.decide_trial) dependencies.decide_trial = run::decide_trial;
  SWEEP_GET(auto store, store::Store::open(db, store::Mode::kReadWrite, std::move(dependencies)));
  return SweepDriver(std::move(store), db);
}

SweepDriver::SweepDriver(std::unique_ptr<store::Store> store, const std::filesystem::path& db)
    : store_(std::move(store)), db_(std::filesystem::absolute(db)) {}

SweepDriver::SweepDriver(SweepDriver&& other) noexcept
    : store_(std::move(other.store_)),
      db_(std::move(other.db_)),
      sweep_(std::move(other.sweep_)),
      held_(std::exchange(other.held_, false)) {}

SweepDriver::~SweepDriver() {
  if (held_) (void)release_lease();
}

Expected<void> SweepDriver::make(const store::SweepRow& wanted) {
  if (const auto known = store_->find_sweep(wanted.name)) SWEEP_TRY(check_may_run(*known));
  SWEEP_GET(auto row, store_->ensure_sweep(wanted));
  use(std::move(row));
  return {};
}

void SweepDriver::use(store::SweepRow sweep) {
  if (held_ && sweep.id != sweep_.id) (void)release_lease();
  sweep_ = std::move(sweep);
}

Expected<Holder> SweepDriver::take_lease(const TakeLease& take) {
  if (held_) return Holder();
  SWEEP_TRY(check_may_run(sweep_));
  auto holder = take ? take(*store_, sweep_) : store_->take_lease(sweep_.id);
  held_ = holder && !*holder;
  if (held_ && sweep_.id != 0) {  // another command may have changed the sweep while this one waited
    SWEEP_GET(sweep_, store_->find_sweep(sweep_.name));
  }
  return holder;
}

Expected<void> SweepDriver::release_lease() {
  held_ = false;
  return store_->release_lease(sweep_.id);
}

Expected<store::SyncCounts> SweepDriver::sync_plan(std::span<const PlanEntry> entries,
                                                   const MeasurePlan& measure) {
  return store_->sync_plan(sweep_.id, entries, measure);
}

Expected<void> SweepDriver::keep_gpu_hours(double hours) {
  store::SweepRow wanted = sweep_;
  wanted.options.gpu_hours = hours, wanted.options.usd.reset();
  return make(wanted);
}

Expected<run::Settings> SweepDriver::settings() const {
  const SweepOptions& kept = sweep_.options;
  run::Settings s;
  s.measure = kept.measure.value_or(MeasurePlan());
  const auto job = own_job();
  s.leave_on_signal = job && job->is_orchestrator;
  s.strategy = kept_strategy(kept);
  s.trial_seconds = kept.trial_seconds;
  s.hang_seconds = kept.hang_seconds;
  s.start_seconds = kept.start_seconds;
  s.gpu_hours = kept.gpu_hours, s.usd = kept.usd;
  s.rehearse_most = kept.rehearse_ranks;
  if (store::on_network_filesystem(db_)) s.status_file = db_.string() + ".status.json";
  return s;
}

Driven<RunReport> SweepDriver::run(const LaunchChoice& choice, const LaunchRequest& request,
                                   const MakeObserver& make_observer) {
  return released(run_with(choice, request, make_observer));
}

Driven<RunReport> SweepDriver::run(const run::Settings& settings, const run::MakeLauncher& make,
                                   run::Observer& observer) {
  return released(loop(settings, make, observer));
}

Driven<RunReport> SweepDriver::run_with(const LaunchChoice& choice, const LaunchRequest& request,
                                        const MakeObserver& make_observer) {
  auto s = settings();
  if (!s) return failed(DriveProblem::kDatabase, s.error());
  const auto entries = store_->plan(sweep_.id);
  if (!entries) return failed(DriveProblem::kDatabase, entries.error());
  if (!is_rehearsal(sweep_.name)) s->judge_node = node_judge(*entries);
  const auto make = prepare_launcher(choice, request, *entries, *s);
  if (!make) return failed(DriveProblem::kLauncher, make.error());
  const auto observer = make_observer(*store_, sweep_);
  if (!observer) return failed(DriveProblem::kDatabase, observer.error());
  return loop(*s, *make, **observer);
}

Driven<RunReport> SweepDriver::loop(const run::Settings& settings, const run::MakeLauncher& make,
                                    run::Observer& observer) {
  auto own = settings;
  own.sweep = sweep_.id;
  if (own.spool_root.empty()) own.spool_root = spool_root_of(db_);
  if (auto safe = prepare_spool_root(own.spool_root, db_); !safe)
    return failed(DriveProblem::kRun, safe.error());
  RunReport report;
  auto end = run::run_sweep(*store_, own, noting_hosts(make, report.hosts), observer);
  if (!end && store_->lease_lost(sweep_.id)) return failed(DriveProblem::kLeaseLost, end.error());
  if (!end) return failed(DriveProblem::kRun, end.error());
  report.end = std::move(*end);
  return report;
}

// Releases the lease, unless the sweep was left for the next start or taken by another process.
Driven<RunReport> SweepDriver::released(Driven<RunReport> report) {
  const bool left = report && report->end.end == run::End::kLeft;
  const bool lost = !report && report.error().problem == DriveProblem::kLeaseLost;
  if (left || lost) {
    held_ = false;
    return report;
  }
  const auto done = release_lease();
  if (report && !done) return failed(DriveProblem::kDatabase, done.error());
  return report;
}

Expected<Finish> SweepDriver::finish(const run::RunEnd& end) {
  if (end.end == run::End::kLeft || end.end == run::End::kInterrupted) return Finish::kInterrupted;
  SWEEP_GET(const auto progress, store_->progress(sweep_.id));
  return run::exit_code_for(progress) == 0 ? Finish::kAnswered : Finish::kUnanswered;
}

Driven<RunReport> run_with_lease(SweepDriver& driver, const LeasedRun& leased,
                                 const std::function<Driven<RunReport>(SweepDriver&)>& run) {
  auto holder = driver.take_lease();
  if (!holder) return failed(DriveProblem::kDatabase, holder.error());
  if (*holder)
    return tl::unexpected(DriveError{DriveProblem::kBusy,
                                     {"sweep '" + driver.sweep().name + "': " + holder_text(**holder)},
                                     std::move(*holder)});
  if (const auto ready = prepare(driver, leased); !ready)
    return failed(DriveProblem::kDatabase, ready.error());
  return run(driver);
}

Expected<OwnWork> own_work(store::Store& store, i64 sweep, std::span<const PlanEntry> plan, bool changes) {
  if (!changes) {
    SWEEP_GET(const auto stored, store.plan(sweep));
    std::set<std::string> has, wants;
    for (const PlanEntry& entry : stored) has.insert(entry.id);
    for (const PlanEntry& entry : plan) wants.insert(entry.id);
    if (wants.empty() || has == wants) return OwnWork::kNone;
  }
  SWEEP_GET(const auto progress, store.progress(sweep));
  return progress.pending + progress.running > 0 ? OwnWork::kBlocked : OwnWork::kNow;
}

std::vector<Outcome> outcomes_of_runs() {
  return {Outcome::kOk,      Outcome::kOom,         Outcome::kHang,     Outcome::kTimeout,  Outcome::kCrash,
          Outcome::kInvalid, Outcome::kUnsupported, Outcome::kNodeLost, Outcome::kCancelled};
}

}  // namespace sweep::driver
