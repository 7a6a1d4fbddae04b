// sweep run, resume, stop: the main job.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "orchestrator/cli/as_job.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/detach.h"
#include "orchestrator/cli/driving.h"
#include "orchestrator/cli/gpu_hours.h"
#include "orchestrator/cli/holder.h"
#include "orchestrator/cli/launchers.h"
#include "orchestrator/cli/node_judge.h"
#include "orchestrator/cli/planning.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/cli/rehearsal.h"
#include "orchestrator/cli/rehearsal_check.h"
#include "orchestrator/report/format.h"
#include "orchestrator/run/retry_policy.h"
#include "orchestrator/run/run_sweep.h"
#include "runtime/own_job.h"
#include "schema/rehearsal.h"
#include "schema/sweep_options.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

struct RunOptions {
  SweepSelector where;
  LaunchRequest launch;
  std::string grid;
  std::string as_job;  // a partition; empty: this process runs it
  std::vector<std::string> retry;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  std::optional<double> gpu_hours;
  i64 rehearse_ranks = kRehearsedRanks;
  bool rehearse = false, take_over = false, quiet = false, detach = false, yes = false;
};

void add_run_options(CLI::App& c, RunOptions& o) {
  add_db(c, o.where);
  c.add_option("--on", o.launch.on,
               "where to run: local, ssh or slurm; absent: what the grid's launch section names, else local")
      ->check(CLI::IsMember({"local", "slurm", "ssh"}));
  c.add_option("--slots", o.launch.slots,
               "CPU ranks or GPUs to use at once; 1: one trial at a time; absent: all of this machine")
      ->check(CLI::PositiveNumber);
  c.add_option("--jobid", o.launch.job,
               "use the nodes of this Slurm allocation instead of asking for new ones")
      ->check(CLI::PositiveNumber);
  c.add_option("--start", o.launch.start, "how ranks start: zygote (forked, fast) or exec")
      ->check(CLI::IsMember({"zygote", "exec"}))
      ->capture_default_str();
  c.add_option(
       "--screen", o.launch.screen,
       "check the nodes before the first trial: show slow or faulty ones, or leave_out: use the others only")
      ->check(CLI::IsMember({"show", "leave_out"}));
  c.add_option("--gpu-hours", o.gpu_hours,
               "start nothing more after this many GPU-hours (allocated time x GPUs or slots, all runs of "
               "the sweep together)")
      ->check(CLI::PositiveNumber);
  c.add_flag("--take-over", o.take_over,
             "take the sweep over from a run that is silent; only when you know that it is gone");
  auto* detach = c.add_flag("--detach", o.detach,
                            "run in the background, without this terminal; the log goes to FILE.db.log");
  c.add_option("--as-job", o.as_job,
               "run the orchestrator in a small Slurm job in this partition; the log goes to FILE.db.log")
      ->type_name("PARTITION")
      ->excludes(detach);
  c.add_flag("--yes", o.yes,
             "do not ask for confirmation, however many GPU-hours are predicted (confirm_gpu_hours)");
  c.add_flag("--quiet", o.quiet, "print no progress, only problems");
  c.add_option("--agent", o.launch.agent, "the sweep-agent program; absent: beside sweep")->type_name("FILE");
  c.add_option("--rank", o.launch.rank, "the sweep-rank program; absent: beside sweep")->type_name("FILE");
}

// Options a sweep keeps, so that `resume` needs no grid file.
SweepOptions kept_options(const grid::Grid& grid, const std::string& on, const RunOptions& o) {
  SweepOptions kept;
  kept.build = std::string(kVersion) + " " + kBuild;
  kept.launcher = on;
  kept.launch = grid.launch.empty() ? "{}" : grid.launch;
  kept.measure = grid.measure;
  kept.retries_crash = grid.limits.retries_crash;
  kept.retries_infra = grid.limits.retries_infra;
  kept.trial_seconds = grid.limits.trial_seconds;
  kept.hang_seconds = grid.limits.hang_seconds;
  kept.gpu_hours = o.gpu_hours ? o.gpu_hours : grid.limits.gpu_hours;
  if (o.launch.slots > 0) kept.slots = o.launch.slots;
  if (o.launch.start != LaunchRequest{}.start) kept.start = o.launch.start;
  kept.screen = o.launch.screen;
  if (o.rehearse) kept.rehearse_ranks = o.rehearse_ranks;
  return kept;
}

Expected<run::Settings> settings_for(const store::SweepRow& sweep, const RunOptions& o) {
  const auto kept = sweep_options_from(sweep.options_json);
  if (!kept) return tl::unexpected(kept.error());
  run::Settings s;
  s.sweep = sweep.id;
  s.measure = kept->measure.value_or(MeasurePlan());
  const auto job = own_job();
  s.leave_on_signal = job && job->is_orchestrator;
  const auto db = std::filesystem::absolute(o.where.db);
  s.spool_root = db.string() + ".spool";
  s.trial_seconds = kept->trial_seconds;
  s.hang_seconds = kept->hang_seconds;
  s.gpu_hours = o.gpu_hours ? o.gpu_hours : kept->gpu_hours;
  s.rehearse_most = kept->rehearse_ranks;
  if (store::on_network_filesystem(db)) s.status_file = db.string() + ".status.json";
  return s;
}

int finish(Io& io, store::Store& store, i64 sweep, const run::RunEnd& end) {
  if (end.end == run::End::kLeft) {
    io.err << report::safe_text(end.why) << '\n';
    return kInterrupted;
  }
  if (end.end == run::End::kInterrupted) {
    io.err << report::safe_text(end.why) << "; `sweep resume` goes on from here\n";
    return kInterrupted;
  }
  if (end.end != run::End::kDone) io.err << "sweep: " << report::safe_text(end.why) << '\n';
  const auto progress = store.progress(sweep);
  return progress ? run::exit_code_for(*progress) : refuse(io, progress.error());
}

// Attaches to a sweep that another process runs. Absent: nothing is heard of that process any more.
std::optional<int> attach(Io& io, store::Store& store, const store::SweepRow& sweep,
                          const store::LeaseHolder& holder, const RunOptions& o) {
  io.err << fmt::format("sweep {} is run by {}; watching it (interrupting stops only the watching)\n",
                        sweep.name, holder_name(holder));
  auto shown = varying_axes(store, sweep.id);
  if (!shown) return refuse(io, shown.error());
  ProgressLine live(io, sweep.name, std::move(*shown), o.quiet);
  const auto end = run::watch(store, sweep.id, live);
  live.close();
  if (!end) return refuse(io, end.error());
  if (end->end == run::End::kInterrupted) {  // only the watching: there is nothing to resume
    io.err << report::safe_text(end->why) << '\n';
    return kInterrupted;
  }
  if (end->end == run::End::kSilent) return std::nullopt;
  return finish(io, store, sweep.id, *end);
}

// Takes the lease, or watches whoever holds it. Absent: taken; else the exit code of this command.
std::optional<int> take_or_watch(Io& io, store::Store& store, const store::SweepRow& sweep,
                                 const RunOptions& o) {
  for (;;) {
    const auto holder = obtain_lease(io, store, sweep, o.where, o.take_over);
    if (!holder) return refuse(io, holder.error());
    if (!*holder) return std::nullopt;
    if (uncertain(*holder)) return kUnanswered;
    if (const auto code = attach(io, store, sweep, **holder, o)) return code;
  }
}

// Runs what is pending; REQUIRES the lease.
Expected<run::RunEnd> run_sweep(Io& io, store::Store& store, const store::SweepRow& sweep,
                                const LaunchChoice& choice, const RunOptions& o) {
  auto settings = settings_for(sweep, o);
  if (!settings) return tl::unexpected(settings.error());
  const auto entries = store.plan(sweep.id);
  if (!entries) return tl::unexpected(entries.error());
  if (!is_rehearsal(sweep.name)) settings->judge_node = node_judge(*entries);
  const auto make = prepare_launcher(choice, o.launch, *settings);
  if (!make) return tl::unexpected(make.error());
  auto shown = varying_axes(store, sweep.id);
  if (!shown) return tl::unexpected(shown.error());
  ProgressLine live(io, sweep.name, std::move(*shown), o.quiet);
  auto end = run::run_sweep(store, *settings, *make, live);
  live.close();
  return end;
}

// The words that make `resume` in a job do what was asked of this command.
std::vector<std::string> words_for_job(const LaunchChoice& choice, const RunOptions& o) {
  std::vector<std::string> out{"--on", choice.on, "--start", o.launch.start, "--quiet"};
  const auto add = [&out](const char* name, const std::string& value) {
    if (!value.empty() && value != "0") out.insert(out.end(), {name, value});
  };
  const auto path = [](const std::string& file) {
    return file.empty() ? file : std::filesystem::absolute(file).string();
  };
  add("--agent", path(o.launch.agent));
  add("--rank", path(o.launch.rank));
  add("--slots", std::to_string(o.launch.slots));
  add("--jobid", std::to_string(choice.existing_job));
  if (o.gpu_hours) add("--gpu-hours", fmt::format("{}", *o.gpu_hours));
  return out;
}

Expected<void> fits_a_job(const std::string& partition, const LaunchChoice& choice) {
  if (choice.on == "local")
    return fail(
        "--as-job is for sweeps that run elsewhere: its job computes nothing, and `--on local` would run the "
        "trials in it; say --on slurm or --on ssh");
  const bool named = std::all_of(partition.begin(), partition.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == ',';
  });
  if (named) return {};
  return fail(fmt::format("--as-job {}: that is no name of a partition", partition));
}

// Hands the sweep over to a job; REQUIRES the lease, which is given back.
int hand_over(Io& io, store::Store& store, const store::SweepRow& sweep, const LaunchChoice& choice,
              const RunOptions& o) {
  if (auto released = store.release_lease(sweep.id); !released) return refuse(io, released.error());
  return hand_to_job(io, o.as_job, o.where.db, sweep.name, choice, words_for_job(choice, o));
}

int drive(Io& io, store::Store& store, const store::SweepRow& sweep, const LaunchChoice& choice,
          const RunOptions& o) {
  if (!o.as_job.empty()) return hand_over(io, store, sweep, choice, o);
  const auto end = run_sweep(io, store, sweep, choice, o);
  if (end && end->end == run::End::kLeft) return finish(io, store, sweep.id, *end);
  const auto released = store.release_lease(sweep.id);
  if (!end) return refuse(io, end.error());
  if (!released) return refuse(io, released.error());
  return finish(io, store, sweep.id, *end);
}

// What it would run on and with is possible.
Expected<void> can_run(const std::vector<PlanEntry>& entries, const LaunchChoice& choice,
                       const RunOptions& o) {
  if (auto fits = slots_fit(choice, o.launch, hardware_of(entries)); !fits) return fits;
  return o.as_job.empty() ? Expected<void>() : fits_a_job(o.as_job, choice);
}

// And wanted.
Expected<void> may_run(Io& io, const Planned& planned, const LaunchChoice& choice, const RunOptions& o) {
  if (auto can = can_run(planned.entries, choice, o); !can) return can;
  const auto own = o.gpu_hours ? o.gpu_hours : planned.grid.limits.gpu_hours;
  return confirmed(io, planned, choice, smaller_limit(own, choice.gpu_hours), o.yes);
}

// What makes new results differ from those the sweep has: another build, another measuring plan.
void say_changes(Io& io, const store::SweepRow& before, const MeasurePlan* measure) {
  const auto kept = sweep_options_from(before.options_json);
  if (!kept) return;
  const std::string now = std::string(kVersion) + " " + kBuild;
  if (measure && kept->measure.value_or(MeasurePlan()) != *measure)
    io.err << "note: the measuring plan changed; earlier results are kept as they are (`sweep resume --retry "
              "ok` "
              "measures them again)\n";
  if (!kept->build.empty() && kept->build != now)
    io.err << fmt::format("note: earlier results of this sweep come from build {}; this is {}\n", kept->build,
                          now);
}

int run_grid(Io& io, const RunOptions& o) {
  auto planned = make_plan(o.grid, o.max_points, std::nullopt);
  if (!planned) return refuse(io, planned.error());
  if (auto named =
          o.rehearse ? make_rehearsal(*planned, o.rehearse_ranks) : measured_name(planned->grid.name);
      !named)
    return refuse(io, named.error());
  const auto choice = o.rehearse ? rehearsal_choice(o.launch, o.rehearse_ranks)
                                 : choose_launcher(planned->grid.launch, o.launch);
  if (!choice) return refuse(io, choice.error());
  if (choice->on == "local") plan::prune_beyond(planned->entries, local_resources());
  if (auto may = may_run(io, *planned, *choice, o); !may) return refuse(io, may.error());
  if (o.detach && planned->grid.from_stream)
    return refuse(io, {"--detach reads the grid again: save it in a file, or leave --detach out"});
  if (o.detach) return detach(io, "--detach", o.where, planned->grid.name, o.where.db + ".log", {"--yes"});
  auto store = run::open_store(o.where.db, store::Mode::kReadWrite);
  if (!store) return refuse(io, store.error());
  store::SweepRow wanted;
  wanted.name = planned->grid.name;
  wanted.question = planned->grid.question;
  if (!planned->grid.from_stream) wanted.grid_path = planned->grid.path.string();
  wanted.grid_text = planned->grid.text;
  wanted.options_json = to_text(kept_options(planned->grid, choice->on, o));
  if (const auto before = (*store)->find_sweep(wanted.name); before) {
    if (const auto code = take_or_watch(io, **store, *before, o)) return *code;
    say_changes(io, *before, &planned->grid.measure);
  }
  const auto sweep = (*store)->ensure_sweep(wanted);
  if (!sweep) return refuse(io, sweep.error());
  if (const auto code = take_or_watch(io, **store, *sweep, o)) return *code;
  const auto counts = (*store)->sync_plan(sweep->id, planned->entries, planned->grid.measure);
  if (!counts) return refuse(io, counts.error());
  io.err << fmt::format("{}: {}; on {}, results in {}\n", planned->grid.name, summary(*planned), choice->on,
                        o.where.db);
  if (const auto crowded = ranks_beyond_cores(*choice, planned->entries))
    io.err << "note: " << *crowded << '\n';
  if (!choice->sites.empty()) io.err << fmt::format("site profile: {}\n", choice->sites);
  if (std::none_of(planned->entries.begin(), planned->entries.end(),
                   [](const PlanEntry& e) { return e.admitted; }))
    io.err << fmt::format("nothing of it can run here; `sweep plan {}` says why, rule by rule\n", o.grid);
  if (counts->retired > 0)
    io.err << fmt::format("{} trials are no longer in the grid and are retired\n", counts->retired);
  return drive(io, **store, *sweep, *choice, o);
}

// The launcher a sweep ran with, unless the command line names another.
Expected<LaunchChoice> kept_choice(const store::SweepRow& sweep, const RunOptions& o) {
  const auto kept = sweep_options_from(sweep.options_json);
  if (!kept) return tl::unexpected(kept.error());
  if (is_rehearsal(sweep.name)) return rehearsal_choice(o.launch, o.rehearse_ranks);
  LaunchRequest request = o.launch;
  if (request.on.empty()) request.on = kept->launcher.empty() ? "local" : kept->launcher;
  return choose_launcher(kept->launch.empty() ? "{}" : kept->launch, request);
}

int resume(Io& io, const RunOptions& o) {
  auto opened = open_sweep(o.where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto choice = kept_choice(opened->sweep, o);
  if (!choice) return refuse(io, choice.error());
  const auto entries = opened->store->plan(opened->sweep.id);
  if (!entries) return refuse(io, entries.error());
  if (auto can = can_run(*entries, *choice, o); !can) return refuse(io, can.error());
  if (o.detach) return detach(io, "--detach", o.where, opened->sweep.name, o.where.db + ".log");
  if (const auto code = take_or_watch(io, *opened->store, opened->sweep, o)) return *code;
  std::vector<Outcome> reopened;
  for (const auto& word : o.retry) {
    const auto outcome = outcome_from(word);
    if (!outcome || *outcome == Outcome::kPruned || *outcome == Outcome::kFailedUnknown)
      return refuse(io,
                    {fmt::format("--retry {}: not an outcome of a run; one of ok, oom, hang, timeout, crash, "
                                 "invalid, node_lost, unsupported, cancelled",
                                 word)});
    reopened.push_back(*outcome);
  }
  if (!reopened.empty())
    if (auto done = opened->store->reopen(opened->sweep.id, reopened); !done) return refuse(io, done.error());
  say_changes(io, opened->sweep, nullptr);
  return drive(io, *opened->store, opened->sweep, *choice, o);
}

}  // namespace

Expected<run::RunEnd> run_pending(Io& io, store::Store& store, const std::string& db,
                                  const store::SweepRow& sweep, const LaunchRequest& request, bool quiet) {
  RunOptions o;
  o.where.db = db, o.launch = request, o.quiet = quiet;
  const auto choice = kept_choice(sweep, o);
  if (!choice) return tl::unexpected(choice.error());
  return run_sweep(io, store, sweep, *choice, o);
}

void add_run(Registry r) {
  auto* c = r.app.add_subcommand(
      "run", "run a grid: plan it, launch its trials, store the results; run it again to resume");
  auto o = std::make_shared<RunOptions>();
  c->add_option("GRID", o->grid, "the grid file (YAML); - reads standard input")->required();
  add_run_options(*c, *o);
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  auto* rehearse =
      c->add_flag("--rehearse", o->rehearse,
                  "run the trials on phantom GPUs of this machine: do they start, do they fit, what do they "
                  "allocate; kept apart from measurements, as the sweep NAME.rehearsal (docs/phantom.md)");
  for (const char* other : {"--on", "--jobid", "--as-job", "--screen", "--slots", "--gpu-hours"})
    rehearse->excludes(c->get_option(other));
  c->add_option("--rehearse-ranks", o->rehearse_ranks,
                "of a trial of at most so many ranks all are started, of a larger one a rank for each role")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return run_grid(r.io, *o); }; });
}

void add_resume(Registry r) {
  auto* c = r.app.add_subcommand("resume", "run the trials that have no final result yet");
  auto o = std::make_shared<RunOptions>();
  add_sweep(*c, o->where);
  add_run_options(*c, *o);
  c->add_option("--retry", o->retry, "run trials with this outcome again (oom, crash, ...); may be repeated");
  c->callback([r, o] { r.chosen = [r, o] { return resume(r.io, *o); }; });
}

}  // namespace sweep::cli
