// sweep compare: what got faster or slower between two sweeps, with significance; or trials side by side.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/compare_page.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/statistics/compare.h"
#include "orchestrator/cli/compare_transfer.h"
#include "orchestrator/cli/page_stamp.h"
#include "orchestrator/export/csv.h"
#include "orchestrator/export/json.h"
#include "schema/codec.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct CompareCommand {
  std::string db = "sweep.db", a, b, fail_on;
  std::vector<std::string> only_a, only_b, trials;
  answers::CompareOptions options;
  TransferCommand transfer;
  bool json = false, csv = false;
};

// For programs. `sides`: a column that names them where one was rehearsed.
Table comparison(const answers::Comparison& found, const answers::CompareOptions& options,
                 const std::string& sides) {
  Table table = answers::compare_table(found, options);
  if (sides.empty()) return table;
  table.columns.emplace_back("rehearsed");
  for (auto& row : table.rows) row.emplace_back(sides);
  return table;
}

// As the command asks: the table for programs, or text for people.
Expected<void> print(Io& io, const CompareCommand& o, const Table& table, const std::string& text) {
  if (o.json) return exports::write_json(io.out, table);
  if (o.csv) return exports::write_csv(io.out, table, {});
  return write_output(io, "", text);
}

// The page of -o; `html` makes it.
Expected<void> write_page(Io& io, const std::string& file, const std::function<std::string()>& html) {
  if (file.empty()) return {};
  if (auto written = write_output(io, file, html()); !written) return written;
  io.err << fmt::format("{}: written\n", file);
  return {};
}

// The trials that were named, in that order, of one sweep.
Expected<std::vector<const ResultRow*>> named_trials(const std::vector<ResultRow>& rows,
                                                     const std::vector<std::string>& prefixes) {
  std::vector<const ResultRow*> out;
  for (const std::string& prefix : prefixes) {
    const auto begins = [&](const ResultRow& row) { return row.trial_id.starts_with(prefix); };
    const auto found = std::ranges::find_if(rows, begins);
    if (found == rows.end())
      return fail(
          fmt::format("no trial of the sweep has an id that begins with '{}'", answers::safe_text(prefix)));
    if (std::ranges::count_if(rows, begins) > 1)
      return fail(fmt::format("several trials have an id that begins with '{}'; give more of it",
                              answers::safe_text(prefix)));
    out.push_back(&*found);
  }
  return out;
}

int compare_trials(Io& io, const CompareCommand& o) {
  if (!o.b.empty())
    return refuse(io, {"--trials compares trials of one sweep: name that sweep alone, or none"});
  if (o.trials.size() < 2) return refuse(io, {"--trials wants at least two, as --trials 2bed,71ac"});
  const auto side = o.a.empty() ? read_latest_side(o.db) : read_compare_side(o.a, o.db, {});
  if (!side) return refuse(io, side.error());
  auto results = named_trials(side->rows, o.trials);
  if (!results) return refuse(io, results.error());
  const auto sides = answers::side_by_side(std::move(*results));
  auto written = print(io, o, answers::side_table(sides),
                       answers::side_text(sides, io.out_is_terminal ? io.width : 0) +
                           answers::rehearsed_line(is_rehearsal(side->sweep.name)));
  if (written)
    written = write_page(io, o.transfer.chart, [&] {
      return answers::side_by_side_html(sides, side->sweep.name, page_stamp().sentence());
    });
  return written ? kAnswered : refuse(io, written.error());
}

// What is wrong with the command line; nullopt: nothing.
std::optional<Error> wrong_in(const CompareCommand& o) {
  if (!o.transfer.wanted && !o.transfer.chart.empty() && !o.transfer.chart.ends_with(".html"))
    return Error{fmt::format(
        "-o {}: the page of a comparison is a FILE.html; with --transfer a picture as .svg or .png",
        o.transfer.chart)};
  if (o.trials.empty() && (o.a.empty() || o.b.empty()))
    return Error{"compare wants two sweeps, A and B, or --trials"};
  if (!(o.options.false_discovery_rate > 0 && o.options.false_discovery_rate < 1))
    return Error{"--fdr wants a share between 0 and 1, such as 0.05"};
  return std::nullopt;
}

int compare_sweeps(Io& io, CompareCommand o) {
  if (const auto wrong = wrong_in(o)) return refuse(io, *wrong);
  if (!o.trials.empty()) return compare_trials(io, o);
  if (!o.fail_on.empty()) {
    const auto share = answers::parse_share(o.fail_on, "regression");
    if (!share) return refuse(io, share.error());
    o.options.fail_on = *share;
  }
  const auto a = read_compare_side(o.a, o.db, o.only_a);
  if (!a) return refuse(io, a.error());
  const auto b = read_compare_side(o.b, o.db, o.only_b);
  if (!b) return refuse(io, b.error());
  if (o.transfer.wanted) {
    o.transfer.json = o.json, o.transfer.csv = o.csv, o.transfer.options.metric = o.options.metric;
    return print_transfer(io, *a, *b, o.transfer);
  }
  if (is_same_sweep(*a, *b))
    io.err << "A and B are the same sweep: each configuration is compared with itself\n";
  const auto found = answers::compare(a->rows, b->rows, o.options);
  if (!found) return refuse(io, found.error());
  if (found->pairs.empty() && found->unanswered == 0)
    return refuse(
        io, {fmt::format("'{}' and '{}' have no configuration in common ({} and {} rows); `sweep compare A B "
                         "--transfer` says in which axes they differ and compares across these",
                         answers::safe_text(a->sweep.name), answers::safe_text(b->sweep.name), a->rows.size(),
                         b->rows.size())});
  const auto sides = rehearsed_sides(*a, *b);
  auto written = print(io, o, comparison(*found, o.options, sides),
                       answers::compare_text(*found, o.options, io.out_is_terminal ? io.width : 0) +
                           (sides.empty() ? "" : sides + ": " + answers::rehearsed_line(true)));
  const std::string machines = answers::machine_differences(a->nodes, b->nodes);
  if (written)
    written = write_page(io, o.transfer.chart, [&] {
      return answers::comparison_html({a->sweep.name, b->sweep.name, a->sweep.options_json,
                                       b->sweep.options_json, machines, page_stamp().sentence()},
                                      *found, o.options);
    });
  if (!written) return refuse(io, written.error());
  io.err << machines;
  if (o.json || o.csv)
    io.err << fmt::format("{} configurations only in A, {} only in B, {} not measured on both sides\n",
                          found->only_a.size(), found->only_b.size(), found->unanswered);
  if (!o.options.fail_on || found->regressions == 0) return kAnswered;
  io.err << fmt::format("{} regression{}: worse by {} or more and significant, or no longer ok\n",
                        found->regressions, found->regressions == 1 ? "" : "s", o.fail_on);
  return kRegression;
}

}  // namespace

void add_compare(Registry r) {
  auto* c = r.app.add_subcommand("compare",
                                 "what got faster or slower between two sweeps, with significance; does the "
                                 "order of one hold for the other");
  auto o = std::make_shared<CompareCommand>();
  c->add_option("A", o->a, "before: the name of a sweep, FILE.db (its latest) or FILE.db:NAME");
  c->add_option("B", o->b, "after: likewise");
  c->add_option("--db", o->db, "where sweeps are that are named without a file")
      ->envname("SWEEP_DB")
      ->capture_default_str()
      ->type_name("FILE");
  c->add_option("--metric", o->options.metric, "what to compare")->capture_default_str();
  c->add_option("--fail-on-regression", o->fail_on,
                "exit 3 when a configuration is significantly worse by at least this share (5% or 0.05), or "
                "no longer ok");
  c->add_option("--fdr", o->options.false_discovery_rate,
                "false discovery rate of the differences called significant")
      ->capture_default_str();
  for (const auto& [name, only] : {std::pair("--only-a", &o->only_a), std::pair("--only-b", &o->only_b)})
    c->add_option(
         name, *only,
         "keep these values of an axis or label on that side: tp=1,8 or nodes=4..64; may be repeated")
        ->type_name("AXIS=VALUES")
        ->allow_extra_args(false);
  auto* trials =
      c->add_option(
           "--trials", o->trials,
           "instead of B: trials of one sweep side by side (A; absent: the latest), by the beginnings of "
           "their ids: each metric with its ratio to the first one's")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("ID,ID");
  add_transfer_options(*c, o->transfer);
  c->get_option("--transfer")->excludes(trials);
  for (const char* other : {"--fail-on-regression", "--fdr"})
    c->get_option("--transfer")->excludes(c->get_option(other));
  auto* json = c->add_flag("--json", o->json,
                           "as JSON, values as stored: an array of objects, of --transfer one document");
  c->add_flag("--csv", o->csv, "as CSV, values as stored")->excludes(json);
  c->callback([r, o] { r.chosen = [r, o] { return compare_sweeps(r.io, *o); }; });
}

}  // namespace sweep::cli
