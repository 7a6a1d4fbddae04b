// sweep confirm: the best configurations of a sweep measured again, longer, interleaved, in several allocations.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/expected.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/driving.h"
#include "orchestrator/cli/holder.h"
#include "orchestrator/cli/remeasured.h"
#include "orchestrator/report/fields.h"
#include "orchestrator/report/format.h"
#include "orchestrator/report/statistics/confirm.h"
#include "schema/codec.h"
#include "schema/sweep_options.h"

namespace sweep::cli {
namespace {

struct ConfirmCommand {
  SweepSelector where;
  std::string metric = "tokens_per_s_gpu";
  i64 top = 3, allocations = 3, repeats = 3, steps = 0;
  LaunchRequest launch;
  bool quiet = false;
};

constexpr i64 kMoreSteps = 3;  // times the sweep's own
constexpr i64 kSpare = 2;      // rounds beyond those asked for, for allocations that were lost

Expected<SweepOptions> options_of(const store::SweepRow& sweep) {
  auto options = sweep_options_from(sweep.options_json);
  if (!options) return fail(fmt::format("sweep '{}': {}", sweep.name, options.error().message));
  if (options->imported)
    return fail(fmt::format(
        "sweep '{}' was imported: its configurations were measured elsewhere. `sweep best {} --yaml` "
        "gives them as a grid to run here",
        sweep.name, sweep.name));
  return options;
}

// The sweep that holds the new results: the same options, more steps, and a link to the one it confirms.
Expected<store::SweepRow> confirming(const store::SweepRow& sweep, const ConfirmCommand& o,
                                     MeasurePlan& measure) {
  auto options = options_of(sweep);
  if (!options) return tl::unexpected(options.error());
  measure = options->measure.value_or(MeasurePlan());
  measure.steps = o.steps > 0 ? o.steps : kMoreSteps * measure.steps;
  measure.repeats = std::max(o.repeats, measure.repeats);
  options->measure = measure;
  options->confirms = sweep.name;
  options->gpu_hours.reset();
  store::SweepRow out;
  out.name = sweep.name + "-confirm";
  out.question = fmt::format("Does the ranking of the best of sweep '{}' hold?", sweep.name);
  out.grid_path = sweep.grid_path, out.grid_text = sweep.grid_text;
  out.options_json = to_text(*options);
  return out;
}

// Refuses a sweep of that name that somebody ran for another purpose.
Expected<void> check_name_is_free(store::Store& store, const store::SweepRow& wanted, const std::string& of) {
  const auto there = store.find_sweep(wanted.name);
  if (!there) return {};
  const auto options = sweep_options_from(there->options_json);
  if (options && options->confirms == of) return {};
  return fail(
      fmt::format("sweep '{}' is there already and confirms nothing; the results would be mixed with its own",
                  wanted.name));
}

// A confirming sweep (the latest one, after a confirmation) stands for the one it confirms.
Expected<void> go_back_to_confirmed(Opened& opened) {
  const auto options = sweep_options_from(opened.sweep.options_json);
  if (!options || options->confirms.empty()) return {};
  auto first = opened.store->find_sweep(options->confirms);
  if (!first) return tl::unexpected(first.error());
  opened.sweep = std::move(*first);
  return {};
}

// Each allocation begins with another one, so that none is always the first or the last.
std::vector<PlanEntry> rotated(const std::vector<PlanEntry>& plan, std::size_t round) {
  std::vector<PlanEntry> out;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    out.push_back(plan[(i + round) % plan.size()]);
    out.back().order = static_cast<i64>(i);
  }
  return out;
}

class Confirmation {
 public:
  Confirmation(Io& io, const ConfirmCommand& o, Opened& opened, std::vector<ResultRow> best)
      : io_(io), o_(o), store_(*opened.store), sweep_(opened.sweep), best_(std::move(best)) {}

  Expected<int> run() {
    auto wanted = confirming(sweep_, o_, measure_);
    if (!wanted) return tl::unexpected(wanted.error());
    SWEEP_TRY(check_name_is_free(store_, *wanted, sweep_.name));
    auto made = store_.ensure_sweep(*wanted);
    if (!made) return tl::unexpected(made.error());
    confirming_ = std::move(*made);
    SWEEP_TRY(choose_plan());
    for (std::size_t round = 0;; ++round) {
      auto all = remeasured(store_, confirming_.id, best_, measure_, o_.metric);
      if (!all) return tl::unexpected(all.error());
      if (enough(*all) || round >= static_cast<std::size_t>(o_.allocations + kSpare)) return answer(*all);
      const auto end = measure_round(*all);
      if (!end) return tl::unexpected(end.error());
      if (end->end == run::End::kDone) continue;
      io_.err << report::safe_text(end->why) << "; the same command goes on from here\n";
      return end->end == run::End::kInterrupted ? kInterrupted : kUnanswered;
    }
  }

 private:
  Expected<void> choose_plan() {
    const auto plan = store_.plan(sweep_.id);
    if (!plan) return tl::unexpected(plan.error());
    for (const auto& row : best_)
      for (const auto& entry : *plan)
        if (entry.id == row.trial_id) plan_.push_back(entry);
    return {};
  }

  bool enough(const std::vector<report::Remeasured>& all) const {
    return std::all_of(all.begin(), all.end(), [&](const report::Remeasured& each) {
      return !each.problem.empty() || static_cast<i64>(each.visits.size()) >= o_.allocations;
    });
  }

  // One allocation with every configuration once.
  Expected<run::RunEnd> measure_round(const std::vector<report::Remeasured>& all) {
    std::size_t visits = 0;
    for (const auto& each : all) visits = std::max(visits, each.visits.size());
    const auto holder = store_.take_lease(confirming_.id);
    if (!holder) return tl::unexpected(holder.error());
    if (*holder)
      return fail(fmt::format("sweep '{}': {}; let it end, or watch it with `sweep status {} --watch`",
                              confirming_.name, standing_text(**holder), confirming_.name));
    const auto synced = store_.sync_plan(confirming_.id, rotated(plan_, visits), measure_);
    if (!synced) return tl::unexpected(synced.error());
    const Outcome ok[] = {Outcome::kOk};
    SWEEP_TRY(store_.reopen(confirming_.id, ok));
    io_.err << fmt::format("{}: allocation {} of {}, {} configurations, {} x {} steps each\n",
                           confirming_.name, visits + 1, o_.allocations, plan_.size(), measure_.repeats,
                           measure_.steps);
    auto end = run_pending(io_, store_, o_.where.db, confirming_, o_.launch, o_.quiet);
    const auto released = store_.release_lease(confirming_.id);
    if (end && !released) return tl::unexpected(released.error());
    return end;
  }

  Expected<int> answer(const std::vector<report::Remeasured>& all) {
    const auto found = report::confirmed(all, o_.metric);
    io_.out << found.text << std::flush;
    return found.holds ? kAnswered : kUnanswered;
  }

  Io& io_;
  const ConfirmCommand& o_;
  store::Store& store_;
  store::SweepRow sweep_, confirming_;
  std::vector<ResultRow> best_;
  std::vector<PlanEntry> plan_;
  MeasurePlan measure_;
};

int confirm(Io& io, const ConfirmCommand& o) {
  if (!follows_from_step_time(o.metric))
    return refuse(
        io, {fmt::format(
                "--metric {}: only what follows from the step time can be confirmed: step_ms, tokens_per_s, "
                "tokens_per_s_gpu, tflops_gpu, mfu, hfu, mt_per_hour or cost_per_mt",
                o.metric)});
  auto opened = open_sweep(o.where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  if (auto back = go_back_to_confirmed(*opened); !back) return refuse(io, back.error());
  const auto holder = opened->store->lease(opened->sweep.id);
  if (!holder) return refuse(io, holder.error());
  if (*holder)
    return refuse(io, {fmt::format("sweep '{}': {}; its best are not known yet", opened->sweep.name,
                                   standing_text(**holder))});
  auto best = opened->store->best(opened->sweep.id, o.metric, !report::lower_is_better(o.metric), o.top);
  if (!best) return refuse(io, best.error());
  if (best->empty()) {
    io.err << fmt::format("sweep '{}' has no ok result with {}: there is nothing to confirm\n",
                          opened->sweep.name, o.metric);
    return kUnanswered;
  }
  const auto done = Confirmation(io, o, *opened, std::move(*best)).run();
  return done ? *done : refuse(io, done.error());
}

}  // namespace

void add_confirm(Registry r) {
  auto* c = r.app.add_subcommand(
      "confirm", "measure the best again, longer and in several allocations: does the ranking hold?");
  auto o = std::make_shared<ConfirmCommand>();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--top", o->top, "how many of the best")->check(CLI::Range(1, 100))->capture_default_str();
  c->add_option("--metric", o->metric, "what makes one the best; it must follow from the step time")
      ->capture_default_str();
  c->add_option("--allocations", o->allocations, "allocations in which each is measured")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  c->add_option("--repeats", o->repeats, "repeats in each allocation")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  c->add_option("--steps", o->steps, "timed steps of a repeat; absent: three times the sweep's")
      ->check(CLI::PositiveNumber);
  c->add_option("--slots", o->launch.slots, "CPU ranks or GPUs to use at once; absent: as the sweep was run")
      ->check(CLI::PositiveNumber);
  c->add_flag("--quiet", o->quiet, "print no progress, only problems");
  c->add_option("--agent", o->launch.agent, "the sweep-agent program; absent: beside sweep")
      ->type_name("FILE");
  c->add_option("--rank", o->launch.rank, "the sweep-rank program; absent: beside sweep")->type_name("FILE");
  c->callback([r, o] { r.chosen = [r, o] { return confirm(r.io, *o); }; });
}

}  // namespace sweep::cli
