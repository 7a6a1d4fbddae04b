// sweep run, resume, stop: the main job.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/cli/driving.h"
#include "orchestrator/cli/live.h"
#include "orchestrator/cli/planning.h"
#include "orchestrator/run/conductor.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

struct RunOptions {
  Where where;
  std::string grid, on, start = "zygote", agent, rank;
  std::vector<std::string> retry;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  i64 slots = 0;  // 0: what this machine has
  std::optional<double> gpu_hours;
  bool take_over = false, quiet = false;
};

void add_run_options(CLI::App& c, RunOptions& o) {
  add_db(c, o.where);
  c.add_option("--on", o.on, "where to run: local; absent: what the grid's launch section names, else local")
      ->check(CLI::IsMember({"local", "slurm", "ssh"}));
  c.add_option("--slots", o.slots, "CPU ranks or GPUs that may be busy at once; absent: all of this machine")
      ->check(CLI::PositiveNumber);
  c.add_option("--start", o.start, "how ranks start: zygote (forked, fast) or exec")
      ->check(CLI::IsMember({"zygote", "exec"}))
      ->capture_default_str();
  c.add_option("--gpu-hours", o.gpu_hours, "end the run when this much allocated time x slots is used")
      ->check(CLI::PositiveNumber);
  c.add_flag("--take-over", o.take_over, "take the lease of a run on another host that is known to be dead");
  c.add_flag("--quiet", o.quiet, "no progress, only problems");
  c.add_option("--agent", o.agent, "the sweep-agent program; absent: beside sweep")->type_name("FILE");
  c.add_option("--rank", o.rank, "the sweep-rank program; absent: beside sweep")->type_name("FILE");
}

// Options a sweep keeps, so that `resume` needs no grid file.
// `slots` of the grid's section launch.local; 0: not given.
i64 local_slots(const grid::Grid& grid) {
  const auto section = parse_json(grid.launch.empty() ? "{}" : grid.launch);
  if (!section || !section->contains("local")) return 0;
  return section->at("local").value("slots", i64{0});
}

nlohmann::json kept_options(const grid::Grid& grid, const std::string& on, const RunOptions& o) {
  nlohmann::json kept = {{"build", std::string(kVersion) + " " + kBuild},
                         {"launcher", on},
                         {"measure", to_json(grid.measure)},
                         {"retries_crash", grid.limits.retries_crash},
                         {"retries_infra", grid.limits.retries_infra}};
  if (const i64 slots = local_slots(grid); slots > 0) kept["slots"] = slots;
  if (grid.limits.trial_seconds) kept["trial_seconds"] = *grid.limits.trial_seconds;
  const auto hours = o.gpu_hours ? o.gpu_hours : grid.limits.gpu_hours;
  if (hours) kept["gpu_hours"] = *hours;
  return kept;
}

Expected<run::Settings> settings_for(const store::SweepRow& sweep, const RunOptions& o) {
  const auto kept = parse_json(sweep.options_json);
  if (!kept) return fail("the sweep's stored options: " + kept.error().message);
  auto measure = from_json<MeasurePlan>(kept->value("measure", nlohmann::json::object()));
  if (!measure) return tl::unexpected(measure.error());
  run::Settings s;
  s.sweep = sweep.id;
  s.measure = *measure;
  s.start = o.start;
  const i64 gpus = local_resources().gpus;
  const i64 machine = gpus > 0 ? gpus : cpu_cores();
  s.slots = o.slots > 0 ? o.slots : kept->value("slots", machine);
  const auto db = std::filesystem::absolute(o.where.db);
  s.spool_root = db.string() + ".spool";
  if (kept->contains("trial_seconds")) s.trial_seconds = kept->at("trial_seconds").get<double>();
  if (o.gpu_hours)
    s.gpu_hours = o.gpu_hours;
  else if (kept->contains("gpu_hours"))
    s.gpu_hours = kept->at("gpu_hours").get<double>();
  if (store::on_network_filesystem(db)) s.status_file = db.string() + ".status.json";
  return s;
}

int finish(Io& io, store::Store& store, i64 sweep, const run::RunEnd& end) {
  if (end.end == run::End::kInterrupted) {
    io.err << end.why << "; `sweep resume` goes on from here\n";
    return kInterrupted;
  }
  if (end.end != run::End::kDone) io.err << "sweep: " << end.why << '\n';
  const auto progress = store.progress(sweep);
  return progress ? run::exit_code_for(*progress) : refuse(io, progress.error());
}

// Attaches to a sweep that another process runs.
int attach(Io& io, store::Store& store, const store::SweepRow& sweep, const store::LeaseHolder& holder,
           const RunOptions& o) {
  io.err << fmt::format(
      "sweep {} is run by process {} on {}; watching it (interrupting stops only the watching)\n", sweep.name,
      holder.pid, holder.host);
  auto shown = varying_axes(store, sweep.id);
  if (!shown) return refuse(io, shown.error());
  Live live(io, sweep.name, std::move(*shown), o.quiet);
  const auto end = run::watch(store, sweep.id, live);
  live.close();
  if (!end) return refuse(io, end.error());
  if (end->end == run::End::kInterrupted) {  // only the watching: there is nothing to resume
    io.err << end->why << '\n';
    return kInterrupted;
  }
  return finish(io, store, sweep.id, *end);
}

// Runs what is pending; REQUIRES the lease.
Expected<run::RunEnd> conduct(Io& io, store::Store& store, const store::SweepRow& sweep,
                              const RunOptions& o) {
  const auto settings = settings_for(sweep, o);
  if (!settings) return tl::unexpected(settings.error());
  const launch::LocalOptions local{
      o.agent.empty() ? program_dir() / "sweep-agent" : std::filesystem::path(o.agent),
      o.rank.empty() ? program_dir() / "sweep-rank" : std::filesystem::path(o.rank), o.start == "zygote"};
  for (const auto& program : {local.agent, local.rank})
    if (!std::filesystem::exists(program))
      return fail(
          fmt::format("{}: not found; build it (scripts/quickstart does) or name it with --agent and "
                      "--rank",
                      program.string()));
  auto shown = varying_axes(store, sweep.id);
  if (!shown) return tl::unexpected(shown.error());
  Live live(io, sweep.name, std::move(*shown), o.quiet);
  const auto make = [&](boost::asio::io_context& io_context, launch::Launcher::Sink sink) {
    return launch::make_local(io_context, local, std::move(sink));
  };
  auto end = run::conduct(store, *settings, make, live);
  live.close();
  return end;
}

int drive(Io& io, store::Store& store, const store::SweepRow& sweep, const RunOptions& o) {
  const auto end = conduct(io, store, sweep, o);
  const auto released = store.release_lease(sweep.id);
  if (!end) return refuse(io, end.error());
  if (!released) return refuse(io, released.error());
  return finish(io, store, sweep.id, *end);
}

Expected<void> check_launcher(const std::string& on) {
  if (on.empty() || on == "local") return {};
  return fail(
      fmt::format("the launcher '{}' is not built into this version; --on local runs on this machine, and "
                  "`sweep plan` plans for any cluster",
                  on));
}

Expected<std::string> launcher_of(const grid::Grid& grid, const RunOptions& o) {
  std::string on = o.on;
  if (on.empty() && !grid.launch.empty()) {
    const auto section = parse_json(grid.launch);
    if (section && section->size() > 1)
      return fail(fmt::format("{}: its launch section names several launchers; choose one with --on",
                              grid.path.string()));
    if (section && section->size() == 1) on = section->begin().key();
  }
  if (auto built = check_launcher(on); !built) return tl::unexpected(built.error());
  return on.empty() ? "local" : on;
}

// What makes new results differ from those the sweep has: another build, another measuring plan.
void say_changes(Io& io, const store::SweepRow& before, const MeasurePlan* measure) {
  const auto kept = parse_json(before.options_json);
  if (!kept || !kept->is_object()) return;
  const std::string now = std::string(kVersion) + " " + kBuild;
  const auto measured = from_json<MeasurePlan>(kept->value("measure", nlohmann::json::object()));
  if (measure && measured && *measured != *measure)
    io.err << "note: the measuring plan changed; earlier results are kept as they are (`sweep resume --retry "
              "ok` "
              "measures them again)\n";
  const std::string then = kept->value("build", now);
  if (then != now)
    io.err << fmt::format("note: earlier results of this sweep come from build {}; this is {}\n", then, now);
}

int run_grid(Io& io, const RunOptions& o) {
  auto planned = make_plan(o.grid, o.max_points, local_resources());
  if (!planned) return refuse(io, planned.error());
  const auto on = launcher_of(planned->grid, o);
  if (!on) return refuse(io, on.error());
  auto store = store::Store::open(o.where.db, store::Mode::kReadWrite);
  if (!store) return refuse(io, store.error());
  store::SweepRow wanted;
  wanted.name = planned->grid.name;
  wanted.question = planned->grid.question;
  wanted.grid_path = planned->grid.path.string();
  wanted.grid_text = planned->grid.text;
  wanted.options_json = dump(kept_options(planned->grid, *on, o));
  if (const auto before = (*store)->find_sweep(wanted.name); before) {
    const auto holder = (*store)->take_lease(before->id, o.take_over);
    if (!holder) return refuse(io, holder.error());
    if (*holder) return attach(io, **store, *before, **holder, o);
    say_changes(io, *before, &planned->grid.measure);
  }
  const auto sweep = (*store)->ensure_sweep(wanted);
  if (!sweep) return refuse(io, sweep.error());
  const auto holder = (*store)->take_lease(sweep->id, o.take_over);
  if (!holder) return refuse(io, holder.error());
  if (*holder) return attach(io, **store, *sweep, **holder, o);
  const auto counts = (*store)->sync_plan(sweep->id, planned->entries, planned->grid.measure);
  if (!counts) return refuse(io, counts.error());
  io.err << fmt::format("{}: {}; on {}, results in {}\n", planned->grid.name, summary(*planned), *on,
                        o.where.db);
  if (std::none_of(planned->entries.begin(), planned->entries.end(),
                   [](const PlanEntry& e) { return e.admitted; }))
    io.err << fmt::format("nothing of it can run here; `sweep plan {}` says why, rule by rule\n", o.grid);
  if (counts->retired > 0)
    io.err << fmt::format("{} trials are no longer in the grid and are retired\n", counts->retired);
  return drive(io, **store, *sweep, o);
}

int resume(Io& io, const RunOptions& o) {
  if (const auto built = check_launcher(o.on); !built) return refuse(io, built.error());
  auto opened = open_sweep(o.where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto holder = opened->store->take_lease(opened->sweep.id, o.take_over);
  if (!holder) return refuse(io, holder.error());
  if (*holder) return attach(io, *opened->store, opened->sweep, **holder, o);
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
  return drive(io, *opened->store, opened->sweep, o);
}

int stop(Io& io, const Where& where, bool now) {
  auto opened = open_sweep(where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto holder = opened->store->lease(opened->sweep.id);
  if (!holder) return refuse(io, holder.error());
  if (!*holder) {
    io.err << fmt::format("sweep {} is not running\n", opened->sweep.name);
    return kAnswered;
  }
  if (auto asked = opened->store->request_stop(opened->sweep.id, now); !asked)
    return refuse(io, asked.error());
  io.err << fmt::format("asked process {} on {} to stop sweep {}{}\n", (*holder)->pid, (*holder)->host,
                        opened->sweep.name, now ? " at once" : " after the attempts it has handed out");
  return kAnswered;
}

}  // namespace

Expected<run::RunEnd> drive_once(Io& io, store::Store& store, const std::string& db,
                                 const store::SweepRow& sweep, const DriveOptions& wanted) {
  RunOptions o;
  o.where.db = db, o.agent = wanted.agent, o.rank = wanted.rank, o.slots = wanted.slots,
  o.quiet = wanted.quiet;
  return conduct(io, store, sweep, o);
}

void add_run(Registry r) {
  auto* c = r.app.add_subcommand("run", "expand, plan, launch, watch and store; run it again and it resumes");
  auto o = std::make_shared<RunOptions>();
  c->add_option("GRID", o->grid, "the grid file (YAML)")->required();
  add_run_options(*c, *o);
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return run_grid(r.io, *o); }; });
}

void add_resume(Registry r) {
  auto* c = r.app.add_subcommand("resume", "run only what has no final result");
  auto o = std::make_shared<RunOptions>();
  add_sweep(*c, o->where);
  add_run_options(*c, *o);
  c->add_option("--retry", o->retry,
                "reopen trials with this outcome (oom, crash, ...); may be given several times");
  c->callback([r, o] { r.chosen = [r, o] { return resume(r.io, *o); }; });
}

void add_stop(Registry r) {
  auto* c = r.app.add_subcommand("stop", "ask the process that runs a sweep to stop");
  auto where = std::make_shared<Where>();
  auto now = std::make_shared<bool>(false);
  add_db(*c, *where);
  add_sweep(*c, *where);
  c->add_flag("--now", *now, "end the running attempts; absent: those handed out finish");
  c->callback([r, where, now] { r.chosen = [r, where, now] { return stop(r.io, *where, *now); }; });
}

}  // namespace sweep::cli
