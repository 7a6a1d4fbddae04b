// sweep plan, explain: what would run, what is pruned and why.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/tables/explain.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/answers/tables/trial_command.h"
#include "orchestrator/cli/as_json.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/gpu_hours.h"
#include "orchestrator/cli/plan_memory.h"
#include "orchestrator/cli/run_strategy.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/driver/rehearsed_plan.h"
#include "orchestrator/driver/script_preview.h"
#include "orchestrator/export/csv.h"
#include "orchestrator/grid/site.h"
#include "schema/codec.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct PlanOptions {
  std::string grid;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  bool list = false, json = false, csv = false, sbatch = false, dry_run = false;
  std::string memory_of;
  SweepSelector where;
};

ResultRow as_row(const PlanEntry& entry) {
  ResultRow row;
  row.trial_id = entry.id;
  row.trial = entry.trial;
  row.state = entry.admitted ? State::kPending : State::kFinished;
  row.outcome = entry.verdict;
  row.reason = entry.reason;
  row.metrics.predicted_bytes = entry.predicted.bytes;
  row.metrics.predicted_ms = entry.predicted.step_ms;
  return row;
}

void print_json(Io& io, const std::vector<PlanEntry>& entries, const driver::RehearsedTrials& rehearsed) {
  for (const auto& entry : entries) {
    nlohmann::json j = {{"id", entry.id},
                        {"trial", to_json(entry.trial)},
                        {"admitted", entry.admitted},
                        {"source", entry.source},
                        {"order", entry.order}};
    if (!entry.admitted)
      j.update({{"outcome", to_string(entry.verdict)}, {"rule", entry.rule}, {"reason", entry.reason}});
    const auto number = [&](const char* key, const auto& value) {
      j[key] = value ? nlohmann::json(*value) : nullptr;
    };
    number("predicted_bytes", entry.predicted.bytes);
    number("predicted_ms", entry.predicted.step_ms);
    number("predicted_seconds", entry.predicted.seconds);
    j["predicted_memory"] = memory_json(entry);
    const auto found = rehearsed.find(entry.id);
    const bool there = found != rehearsed.end();
    j["rehearsed_outcome"] = there ? nlohmann::json(to_string(found->second.outcome)) : nullptr;
    number("rehearsed_allocated_bytes", there ? found->second.allocated_bytes : std::nullopt);
    number("rehearsed_reserved_bytes", there ? found->second.reserved_bytes : std::nullopt);
    io.out << dump(j) << '\n';
  }
}

// Pruned trials by rule, with the first reason of each as an example.
void print_pruned(Io& io, const std::vector<PlanEntry>& entries) {
  std::map<std::string, std::pair<i64, std::string>> rules;
  for (const auto& entry : entries) {
    if (entry.admitted) continue;
    auto& [count, example] = rules[entry.rule];
    if (++count == 1) example = entry.reason;
  }
  for (const auto& [rule, seen] : rules)
    io.out << fmt::format("  {:>6}  {:<14} e.g. {}\n", seen.first, rule, answers::safe_text(seen.second));
}

// Every trial with what varies, the prediction and, where there is one, its rehearsal.
Expected<Table> plan_table(const std::vector<PlanEntry>& entries, const driver::RehearsedTrials& rehearsed) {
  std::vector<ResultRow> rows;
  for (const auto& entry : entries) rows.push_back(as_row(entry));
  answers::TableOptions options;
  options.metrics = {"predicted_ms", "predicted_bytes"};
  auto table = answers::select(rows, options);
  if (table && !rehearsed.empty()) driver::add_rehearsed(*table, rehearsed);
  return table;
}

// "rehearsed: 4 of 6 admitted trials (3 ok, 1 oom); ..."; empty: none.
std::string rehearsed_summary(const std::vector<PlanEntry>& entries,
                              const driver::RehearsedTrials& rehearsed) {
  std::map<Outcome, i64> outcomes;
  i64 admitted = 0, count = 0;
  for (const auto& entry : entries) {
    if (!entry.admitted) continue;
    ++admitted;
    if (const auto found = rehearsed.find(entry.id); found != rehearsed.end())
      ++outcomes[found->second.outcome], ++count;
  }
  if (count == 0) return {};
  std::string parts;
  for (const auto& [outcome, trials] : outcomes)
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", trials, to_string(outcome));
  return fmt::format("rehearsed on phantom GPUs: {} of {} admitted trials ({}); --list shows their bytes\n",
                     count, admitted, parts);
}

Expected<void> list_plan(Io& io, const std::vector<PlanEntry>& entries,
                         const driver::RehearsedTrials& rehearsed, bool csv) {
  const auto table = plan_table(entries, rehearsed);
  if (!table) return tl::unexpected(table.error());
  if (csv) return exports::write_csv(io.out, *table, {});
  io.out << '\n' << answers::to_text(*table, io.out_is_terminal ? io.width : 0);
  return {};
}

// Scripts to out; what the scheduler answers to them to err. Nothing is submitted.
int show_scripts(Io& io, const driver::Planned& planned, const std::string& db) {
  const auto previews = driver::preview_scripts(planned.entries, planned.grid.launch, db);
  if (!previews) return refuse(io, previews.error());
  bool accepted = true;
  for (const auto& each : *previews) {
    io.out << each.script << '\n' << std::flush;
    io.err << (each.accepted ? "" : "sbatch would not take it: ") << each.answer;
    accepted = accepted && each.accepted;
  }
  return accepted ? kAnswered : kUnanswered;
}

std::string total_line(const std::vector<PlanEntry>& entries, std::optional<double> usd) {
  double seconds = 0;
  i64 known = 0, unknown = 0;
  for (const auto& entry : entries) {
    if (!entry.admitted) continue;
    ++(entry.predicted.seconds ? known : unknown);
    seconds += entry.predicted.seconds.value_or(0);
  }
  if (known == 0 && unknown > 0)
    return "estimated total: not known before the first result; nothing predicts this program's time\n";
  return fmt::format(
      "estimated total, run serially: {} and {} GPU-hours{}{}\n", answers::rough_duration(seconds),
      answers::rough_hours(driver::predicted_gpu_hours(entries)),
      usd ? fmt::format(", {:.2f} USD", *usd) : "",
      unknown > 0 ? fmt::format("; {} trials more, whose time nothing predicts", unknown) : "");
}

// The sums over admitted trials: time, price and what the sweep has held so far.
Expected<void> print_costs(Io& io, const driver::Planned& planned, const std::string& db) {
  const auto& entries = planned.entries;
  io.out << fmt::format("{}: {}\n", planned.grid.name, driver::summary(planned));
  if (!planned.grid.question.empty()) io.out << answers::safe_lines(planned.grid.question) << '\n';
  const auto site = grid::read_site(grid::site_files());
  if (!site) return tl::unexpected(site.error());
  if (const auto strategy = chosen_strategy(planned.grid, {}); strategy && !strategy->runs_all()) {
    const auto most = most_run(entries, *strategy);
    io.out << fmt::format("strategy {}: {}; of them at most {} run, for at most {} GPU-hours\n",
                          to_string(strategy->kind), strategy_sentence(*strategy), most.trials,
                          answers::rough_hours(most.cost));
  }
  const auto usd = driver::predicted_usd(entries, site->usd_per_node_hour);
  io.out << total_line(entries, usd);
  for (const auto& origin : planned.times_from) io.out << "times of " << answers::safe_text(origin) << '\n';
  for (const auto& why : planned.not_run) io.out << "note: " << why << '\n';
  if (usd) {
    for (const auto& price : driver::prices_of(entries, site->usd_per_node_hour))
      io.out << "price: " << price << '\n';
  }
  if (const auto held = held_hours_in(db, planned.grid.name,
                                      driver::smaller_limit(planned.grid.limits.gpu_hours, site->gpu_hours));
      !held.empty())
    io.out << "so far: " << held << '\n';
  return {};
}

int plan_grid(Io& io, const PlanOptions& o) {
  auto planned = driver::make_plan(o.grid, o.max_points, std::nullopt);
  if (!planned) return refuse(io, planned.error());
  if (auto done = prune_memory(io, *planned, o.dry_run); !done) return refuse(io, done.error());
  if (!o.memory_of.empty()) {
    const auto shown = print_memory(io, *planned, o.memory_of);
    return shown ? kAnswered : refuse(io, shown.error());
  }
  const auto choice = driver::choose_launcher(planned->grid.launch, {});
  if (choice)
    if (auto fits = driver::slots_fit(*choice, {}, driver::hardware_of(planned->entries)); !fits)
      return refuse(io, fits.error());
  if (const auto lacking = choice ? choice->config->lacking_hosts(planned->entries) : std::nullopt)
    io.err << fmt::format("sweep: {}\n", *lacking);
  if (const auto crowded = choice ? driver::ranks_beyond_cores(*choice, planned->entries) : std::nullopt)
    io.err << fmt::format("sweep: {}\n", *crowded);
  if (o.sbatch) return show_scripts(io, *planned, o.where.db);
  auto& entries = planned->entries;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const PlanEntry& a, const PlanEntry& b) { return a.order < b.order; });
  const auto rehearsed = driver::rehearsed_in(o.where.db);
  if (!rehearsed) return refuse(io, rehearsed.error());
  if (o.json) return print_json(io, entries, *rehearsed), kAnswered;
  if (o.csv) {
    const auto listed = list_plan(io, entries, *rehearsed, true);
    return listed ? kAnswered : refuse(io, listed.error());
  }
  if (auto printed = print_costs(io, *planned, o.where.db); !printed) return refuse(io, printed.error());
  io.out << memory_summary(*planned, o.dry_run) << rehearsed_summary(entries, *rehearsed);
  print_pruned(io, entries);
  io.out << answers::first_command(entries);
  if (!o.list) return kAnswered;
  const auto listed = list_plan(io, entries, *rehearsed, false);
  return listed ? kAnswered : refuse(io, listed.error());
}

int explain(Io& io, const SweepSelector& where, const std::string& prefix, bool as_json) {
  auto opened = open_sweep(where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto view = answers::explain_view(*opened->store, opened->sweep.id, prefix);
  if (!view) return refuse(io, view.error());
  if (as_json) return print_document(io, answers::explain_json(*view, opened->sweep.name)), kAnswered;
  io.out << answers::explain(*view, io.out_is_terminal ? io.width : 0)
         << answers::rehearsed_line(is_rehearsal(opened->sweep.name));
  return kAnswered;
}

}  // namespace

void add_plan(Registry r) {
  auto* c = r.app.add_subcommand(
      "plan", "show what would run, in which order, and what is pruned and why; starts nothing");
  auto o = std::make_shared<PlanOptions>();
  c->add_option("GRID", o->grid, "the grid file (YAML); - reads standard input")->required();
  c->add_flag("--list", o->list, "list every trial, in run order");
  auto* json = c->add_flag("--json", o->json, "every trial as one line of JSON (docs/json.md)");
  c->add_flag("--csv", o->csv, "every trial as CSV, values as stored")->excludes(json);
  c->add_flag("--sbatch", o->sbatch,
              "print the batch scripts of the first allocations, and whether sbatch would accept them");
  c->add_flag("--dry-run", o->dry_run,
              "measure what lies near its memory limit by a dry run of the step (needs sweep-rank)");
  c->add_option("--memory", o->memory_of, "show one trial's memory by pipeline stage and part")
      ->type_name("ID");
  add_db(*c, o->where);
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return plan_grid(r.io, *o); }; });
}

void add_explain(Registry r) {
  auto* c = r.app.add_subcommand("explain",
                                 "one trial: its configuration, why it was pruned or how its attempts ended");
  auto where = std::make_shared<SweepSelector>();
  auto id = std::make_shared<std::string>();
  c->add_option("ID", *id, "trial id, or the beginning of one")->required();
  add_sweep(*c, *where);
  add_db(*c, *where);
  auto json = std::make_shared<bool>(false);
  c->add_flag("--json", *json, "as JSON (docs/json.md)");
  c->callback([r, where, id, json] {
    r.chosen = [r, where, id, json] { return explain(r.io, *where, *id, *json); };
  });
}

}  // namespace sweep::cli
