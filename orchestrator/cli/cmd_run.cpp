// sweep run, resume: run a grid, or what is pending of a sweep.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/detach.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/cli/run_notices.h"
#include "orchestrator/cli/run_strategy.h"
#include "orchestrator/driver/gpu_hours.h"
#include "orchestrator/driver/machine.h"
#include "orchestrator/driver/memory_check.h"
#include "orchestrator/driver/orchestrator_job.h"
#include "orchestrator/driver/rehearsal.h"
#include "orchestrator/driver/rehearsal_check.h"
#include "orchestrator/driver/sweep_driver.h"
#include "orchestrator/run/retry_policy.h"
#include "runtime/own_job.h"
#include "schema/rehearsal.h"
#include "schema/sweep_options.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

using driver::LaunchChoice, driver::LaunchRequest, driver::Planned, driver::SweepDriver;

struct RunOptions {
  SweepSelector where;
  LaunchRequest launch;
  std::string grid, as_job;  // as_job: a partition; empty: this process runs it
  std::vector<std::string> retry, readmit;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  std::optional<double> gpu_hours, usd;  // usd: the limit that gpu_hours was computed from
  StrategyFlags strategy;
  exports::NotifyTargets notify;
  i64 rehearse_ranks = driver::kRehearsedRanks;
  bool suggested = false, rehearse = false, take_over = false, quiet = false, detach = false, yes = false,
       store_only = false;
};

void add_run_options(CLI::App& c, RunOptions& o, bool resumed) {
  add_db(c, o.where);
  add_json(c, "the sweep and its database as a line of JSON when it begins (docs/json.md)");
  add_launcher_name(c, o.launch.on,
                    "where to run" + absent(resumed, "what the grid's launch section names, else local"));
  c.add_option("--slots", o.launch.slots,
               "CPU ranks or GPUs to use at once; 1: one trial at a time" +
                   absent(resumed, "all of this machine, 1 for commands on a CPU"))
      ->check(above_zero());
  c.add_option("--jobid", o.launch.job,
               "use the nodes of this Slurm allocation instead of asking for new ones")
      ->check(above_zero());
  add_rank_start(c, o.launch, resumed);
  c.add_option(
       "--screen", o.launch.screen,
       "check the nodes before the first trial: show slow or faulty ones, or leave_out: use the others only" +
           absent(resumed))
      ->check(CLI::IsMember({"show", "leave_out"}));
  c.add_option("--gpu-hours", o.gpu_hours,
               "start nothing more after this many GPU-hours (allocated time x GPUs or slots, all runs of "
               "the sweep together)")
      ->check(above_zero());
  c.add_flag("--take-over", o.take_over,
             "continue a sweep whose run no longer responds; use only if that process is dead");
  auto* detach = c.add_flag("--detach", o.detach,
                            "run in the background, without this terminal; the log goes to FILE.db.log");
  c.add_option("--as-job", o.as_job,
               "run the orchestrator in a small Slurm job in this partition; the log goes to FILE.db.log")
      ->type_name("PARTITION")
      ->excludes(detach);
  c.add_flag("--yes", o.yes,
             "do not ask for confirmation, however many GPU-hours are predicted (confirm_gpu_hours)");
  c.add_option("--readmit", o.readmit,
               "give a host work again that `status` lists as excluded; may be repeated")
      ->type_name("HOST");
  c.add_flag("--quiet", o.quiet, "print no progress, only problems");
  add_notify(c, o.notify);
  add_programs(c, o.launch);
}

// Options a sweep keeps, so that `resume` needs no grid file.
SweepOptions kept_options(const grid::Grid& grid, const std::string& on, const RunOptions& o) {
  SweepOptions kept;
  kept.build = std::string(kVersion) + " " + kBuild;
  kept.launcher = on;
  kept.launch = grid.launch;
  kept.measure = grid.measure;
  kept.retries_crash = grid.limits.retries_crash;
  kept.retries_infra = grid.limits.retries_infra;
  kept.trial_seconds = grid.limits.trial_seconds;
  kept.hang_seconds = grid.limits.hang_seconds;
  kept.start_seconds = grid.limits.start_seconds;
  kept.gpu_hours = o.gpu_hours ? o.gpu_hours : grid.limits.gpu_hours;
  kept.usd = o.usd;
  if (o.launch.slots > 0) kept.slots = o.launch.slots;
  if (o.launch.start) kept.start = to_string(*o.launch.start);
  kept.screen = o.launch.screen;
  if (const auto strategy = driver::chosen_strategy(grid, o.strategy.wanted)) keep_strategy(*strategy, kept);
  if (o.rehearse) kept.rehearse_ranks = o.rehearse_ranks;
  return kept;
}

// The trials that a command wants in its sweep; none: those that are there.
using Wanted = std::span<const PlanEntry>;

// Watches a sweep that another process runs. nullopt: the lease may be had, and there is work for it: that process is
// gone, no heartbeat comes from it, or its run has ended without what this command asks for.
std::optional<int> watch(Io& io, SweepDriver& driver, const store::LeaseHolder& holder, Wanted wanted,
                         const RunOptions& o) {
  io.err << fmt::format("sweep {} is run by {}; watching it (interrupting stops only the watching)\n",
                        driver.sweep().name, driver::holder_name(holder));
  const auto live = progress_lines(io, o.quiet)(driver.store(), driver.sweep());
  if (!live) return refuse(io, live.error());
  const auto end = run::watch(driver.store(), driver.sweep().id, **live, driver::job_word_on);
  if (!end) return refuse(io, end.error());
  if (end->end == run::End::kSilent) return std::nullopt;
  if (end->end == run::End::kInterrupted) {  // only the watching: there is nothing to resume
    io.err << answers::safe_text(end->why) << '\n';
    return kInterrupted;
  }
  const bool changes = !o.retry.empty() || (wanted.empty() && o.gpu_hours);
  const auto own = driver::own_work(driver.store(), driver.sweep().id, wanted, changes);
  if (!own) return refuse(io, own.error());
  if (*own == driver::OwnWork::kNow) return std::nullopt;
  if (*own == driver::OwnWork::kBlocked)
    io.err
        << "that run has left trials; what this command changes in the sweep is not stored: type it again\n";
  return finish(io, driver, *end);
}

// Takes the lease, or watches the process that holds it. nullopt: taken; else the exit code of this command.
std::optional<int> take_or_watch(Io& io, SweepDriver& driver, Wanted wanted, const RunOptions& o) {
  const auto say = [&io](const std::string& line) { io.err << line << '\n' << std::flush; };
  for (;;) {
    const auto holder = driver.take_lease([&](store::Store& store, const store::SweepRow& sweep) {
      return driver::obtain_lease(store, sweep, o.where.db, o.take_over, say);
    });
    if (!holder) return refuse(io, holder.error());
    if (!*holder) return std::nullopt;
    if (driver::uncertain(*holder)) return kUnanswered;
    if (const auto code = watch(io, driver, **holder, wanted, o)) return code;
  }
}

// Hands the sweep over to a job; REQUIRES the lease, which is released.
int hand_over(Io& io, SweepDriver& driver, const LaunchChoice& choice, const RunOptions& o) {
  if (auto released = driver.release_lease(); !released) return refuse(io, released.error());
  const auto& sweep = driver.sweep().name;
  auto words = driver::launch_words(choice, o.launch);
  words.emplace_back("--quiet");
  const auto job = driver::submit_orchestrator({o.as_job, driver.db(), sweep, std::move(words)}, choice);
  if (!job && !job.error().refused) return refuse(io, job.error().error);
  if (!job) {
    io.err << "sweep: " << job.error().error.message << '\n';
    return kUnanswered;
  }
  if (job->was_there)
    io.err << fmt::format("sweep {} has its Slurm job already: {} ({})\n", sweep, job->number, job->state);
  else
    io.err << fmt::format(
        "sweep {} is handed to Slurm job {} in partition {}; its log goes to {}\n"
        "`sweep status`, `sweep stop` and `sweep resume` (which watches it) work from any node\n",
        sweep, job->number, o.as_job, job->log.string());
  return kAnswered;
}

// The sweep may have a job in the queue that was to go on with it: Slurm puts one back that it preempted.
void cancel_needless_job(Io& io, const SweepDriver& driver) {
  const auto own = own_job();
  if (own && own->is_orchestrator) return;
  const auto job = driver::cancel_waiting_job(driver.db(), driver.sweep().name);
  if (job && *job)
    io.err << fmt::format("cancelled Slurm job {}, which was to go on with sweep {}: it is finished\n", **job,
                          driver.sweep().name);
}

int drive(Io& io, SweepDriver& driver, const LaunchChoice& choice, const RunOptions& o) {
  for (const auto& host : o.readmit)
    if (auto done = driver.store().readmit_host(driver.sweep().id, host); !done)
      return refuse(io, done.error());
  if (!o.as_job.empty()) return hand_over(io, driver, choice, o);
  RunNotices notices(io, o.notify, driver.db());
  const auto report = driver.run(choice, o.launch, notices.with(progress_lines(io, o.quiet)));
  notices.ended(driver.store(), driver.sweep(),
                report ? report->end : run::RunEnd{run::End::kBroken, report.error().error.message});
  if (report && report->end.end == run::End::kDone) cancel_needless_job(io, driver);
  return report ? finish(io, driver, report->end) : refuse(io, report.error().error);
}

// Checks that the hardware and programs for the run are there.
Expected<void> can_run(const std::vector<PlanEntry>& entries, const LaunchChoice& choice,
                       const RunOptions& o) {
  if (auto fits = driver::slots_fit(choice, o.launch, driver::hardware_of(entries)); !fits) return fits;
  return o.as_job.empty() ? Expected<void>() : driver::fits_a_job(o.as_job, choice);
}

// The answer y on a terminal; without one the command must be given another way.
Expected<void> ask_to_confirm(Io& io, const std::string& why, double limit) {
  if (io.in == nullptr)
    return fail(fmt::format("{}; say --yes, or end it at {:.3g} with --gpu-hours", why, limit));
  return goes_on(io, why) ? Expected<void>() : fail("nothing was started");
}

// Checks that the user wants the run, and can be told of it.
Expected<void> may_run(Io& io, const Planned& planned, const LaunchChoice& choice, const RunOptions& o) {
  SWEEP_TRY(can_run(planned.entries, choice, o));
  SWEEP_TRY(check_notify(o.notify, !o.as_job.empty()));
  const auto own = o.gpu_hours ? o.gpu_hours : planned.grid.limits.gpu_hours;
  const auto strategy = driver::chosen_strategy(planned.grid, o.strategy.wanted).value_or(Strategy());
  SWEEP_TRY(driver::can_decide(strategy, o.strategy.wanted));
  if (o.yes) return {};
  const auto most = most_left(planned.entries, strategy, {o.where.db, planned.grid.name});
  const auto bound = driver::smaller_limit(own, choice.gpu_hours);
  const double limit = choice.config->confirm_gpu_hours();
  const auto why = driver::why_confirm(most, limit, bound);
  return why ? ask_to_confirm(io, *why, limit) : Expected<void>();
}

store::SweepRow wanted_sweep(const Planned& planned, const std::string& on, const RunOptions& o) {
  store::SweepRow out;
  out.name = planned.grid.name;
  out.question = planned.grid.question;
  if (!planned.grid.from_stream) out.grid_path = planned.grid.path.string();
  out.grid_text = planned.grid.text;
  out.options = kept_options(planned.grid, on, o);
  return out;
}

// Stores the sweep and its plan, and shows what will run. nullopt: go on; else the exit code of this command.
std::optional<int> store_plan(Io& io, SweepDriver& driver, const Planned& planned, const LaunchChoice& choice,
                              const RunOptions& o) {
  const auto wanted = wanted_sweep(planned, choice.on, o);
  if (const auto before = driver.store().find_sweep(wanted.name); before) {
    driver.use(*before);
    if (const auto code = take_or_watch(io, driver, planned.entries, o)) return *code;
    say_changes(io, driver.sweep(), &planned.grid.measure);
  }
  if (auto made = driver.make(wanted); !made) return refuse(io, made.error());
  if (const auto code = take_or_watch(io, driver, planned.entries, o)) return *code;
  const auto counts = driver.sync_plan(planned.entries, planned.grid.measure);
  if (!counts) return refuse(io, counts.error());
  io.err << fmt::format("{}: {}; on {}, results in {}\n", planned.grid.name, summary(planned), choice.on,
                        o.where.db);
  for (const auto& by : planned.corrected) io.err << "times of " << answers::safe_text(by) << '\n';
  if (auto kept = driver::keep_suggested(driver.store(), driver.sweep().id, planned); !kept)
    return refuse(io, kept.error());
  if (auto begun = begin_strategy(io, driver, planned.grid, choice, o.strategy); !begun)
    return refuse(io, begun.error());
  if (const auto crowded = driver::ranks_beyond_cores(choice, planned.entries))
    io.err << "note: " << *crowded << '\n';
  if (!choice.sites.empty()) io.err << fmt::format("site profile: {}\n", choice.sites);
  if (std::ranges::none_of(planned.entries, &PlanEntry::admitted))
    io.err << fmt::format(
        "no trial of this grid can run here; `sweep plan {}` lists the rule that excludes each\n", o.grid);
  if (counts->retired > 0)
    io.err << fmt::format("{} trials are no longer in the grid and are retired\n", counts->retired);
  return std::nullopt;
}

// For programs, before the first trial: what `status` is asked for.
void say_begun(Io& io, const std::string& sweep, const RunOptions& o) {
  if (!io.json) return;
  const nlohmann::json line = {{"sweep", sweep}, {"db", o.where.db}};
  io.out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n' << std::flush;
}

int run_grid(Io& io, RunOptions o) {
  auto planned =
      driver::make_plan(o.grid, o.max_points, o.rehearse ? "" : o.where.db, progress_to(io, o.quiet),
                        o.suggested ? std::optional(o.where.db) : std::nullopt);
  if (!planned) return refuse(io, planned.error());
  say_suggested(io, *planned);
  o.strategy.wanted.rehearses = o.rehearse;
  if (o.rehearse)
    if (auto made = driver::make_rehearsal(*planned, o.rehearse_ranks); !made)
      return refuse(io, made.error());
  const double audit = driver::chosen_strategy(planned->grid, o.strategy.wanted).value_or(Strategy()).audit;
  if (!o.rehearse)  // a rehearsal finds out itself what fits
    if (auto checked =
            driver::check_memory(*planned, driver::DryRunScope::kNearest, audit, progress_to(io, o.quiet));
        !checked)
      return refuse(io, checked.error());
  const auto choice = o.rehearse ? driver::rehearsal_choice(o.launch, planned->entries, o.rehearse_ranks)
                                 : driver::choose_launcher(planned->grid.launch, o.launch);
  if (!choice) return refuse(io, choice.error());
  if (choice->config->uses_this_machine()) driver::prune_beyond(*planned, driver::local_resources());
  if (const auto usd = o.strategy.usd ? o.strategy.usd : planned->grid.limits.usd; usd && !o.rehearse) {
    const auto hours = driver::gpu_hours_for(*usd, planned->entries, choice->usd_per_node_hour,
                                             choice->config->uses_this_machine());
    if (!hours) return refuse(io, hours.error());
    o.gpu_hours = driver::smaller_limit(o.gpu_hours ? o.gpu_hours : planned->grid.limits.gpu_hours, *hours);
    if (o.gpu_hours == *hours) o.usd = *usd;
  }
  if (auto may = may_run(io, *planned, *choice, o); !may) return refuse(io, may.error());
  if (o.detach && planned->grid.from_stream)
    return refuse(io, {"--detach reads the grid again: save it in a file, or leave --detach out"});
  say_begun(io, planned->grid.name, o);
  if (o.detach) return detach(io, o.where, planned->grid.name, o.where.db + ".log", {"--yes"});
  auto store = run::open_store(o.where.db, store::Mode::kReadWrite);
  if (!store) return refuse(io, store.error());
  SweepDriver driver(std::move(*store), o.where.db);
  if (const auto code = store_plan(io, driver, *planned, *choice, o)) return *code;
  return drive(io, driver, *choice, o);
}

// The launcher a sweep ran with, unless the command line names another.
Expected<LaunchChoice> kept_choice(const store::SweepRow& sweep, const std::vector<PlanEntry>& entries,
                                   const LaunchRequest& launch) {
  if (!is_rehearsal(sweep.name)) return driver::kept_launcher(sweep.options, launch);
  return driver::rehearsal_choice(launch, entries,
                                  sweep.options.rehearse_ranks.value_or(driver::kRehearsedRanks));
}

// Stores what the command asks for beyond the pending trials. REQUIRES the lease.
Expected<void> keep_request(SweepDriver& driver, const RunOptions& o) {
  std::vector<Outcome> reopened;
  for (const auto& word : o.retry) reopened.push_back(outcome_from(word).value());
  if (!reopened.empty()) SWEEP_TRY(driver.store().reopen(driver.sweep().id, reopened));
  return o.gpu_hours ? driver.keep_gpu_hours(*o.gpu_hours) : Expected<void>();
}

int resume(Io& io, RunOptions o) {
  if (o.store_only) return store_left_results(io, o.where);
  auto opened = open_sweep(o.where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto entries = opened->store->plan(opened->sweep.id);
  if (!entries) return refuse(io, entries.error());
  o.launch = driver::with_kept(std::move(o.launch), opened->sweep.options);
  const auto choice = kept_choice(opened->sweep, *entries, o.launch);
  if (!choice) return refuse(io, choice.error());
  if (auto can = can_run(*entries, *choice, o); !can) return refuse(io, can.error());
  if (auto can = check_notify(o.notify, !o.as_job.empty()); !can) return refuse(io, can.error());
  say_begun(io, opened->sweep.name, o);
  if (o.detach) return detach(io, o.where, opened->sweep.name, o.where.db + ".log");
  SweepDriver driver(std::move(opened->store), o.where.db);
  driver.use(std::move(opened->sweep));
  if (const auto code = take_or_watch(io, driver, {}, o)) return *code;
  if (auto done = keep_request(driver, o); !done) return refuse(io, done.error());
  say_changes(io, driver.sweep(), nullptr);
  return drive(io, driver, *choice, o);
}

}  // namespace

void add_run(Registry r) {
  auto* c = r.app.add_subcommand(
      "run", "run a grid: plan it, launch its trials, store the results; run it again to resume");
  auto o = std::make_shared<RunOptions>();
  c->add_option("GRID", o->grid, "the grid file (YAML); - reads standard input")->required();
  add_run_options(*c, *o, false);
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  add_suggested(*c, o->suggested);
  add_strategy_options(*c, o->strategy);
  auto* rehearse =
      c->add_flag("--rehearse", o->rehearse,
                  "run the trials on phantom GPUs of this machine: do they start, do they fit, what do they "
                  "allocate; kept apart from measurements, as the sweep NAME.rehearsal (docs/rehearsal.md)");
  for (const char* other : {"--on", "--jobid", "--as-job", "--screen", "--slots", "--gpu-hours"})
    rehearse->excludes(c->get_option(other));
  c->add_option("--rehearse-ranks", o->rehearse_ranks,
                "of a trial of at most so many ranks all are started, of a larger one a rank for each role")
      ->needs(rehearse)
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return run_grid(r.io, *o); }; });
}

void add_resume(Registry r) {
  auto* c = r.app.add_subcommand("resume", "run the trials that have no final result yet");
  auto o = std::make_shared<RunOptions>();
  add_sweep(*c, o->where);
  add_run_options(*c, *o, true);
  c->add_flag("--store-only", o->store_only,
              "store the results that a run left in its spool when it died, and run nothing");
  std::vector<std::string> outcomes;
  for (const Outcome each : driver::outcomes_of_runs()) outcomes.emplace_back(to_string(each));
  c->add_option("--retry", o->retry, "run trials with this outcome again; may be repeated")
      ->check(CLI::IsMember(outcomes));
  c->callback([r, o] { r.chosen = [r, o] { return resume(r.io, *o); }; });
}

}  // namespace sweep::cli
