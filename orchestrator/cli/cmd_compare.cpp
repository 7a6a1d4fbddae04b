// sweep compare: what got faster or slower between sweeps, with significance; or trials side by side.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/pages/compare_page.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/statistics/compare.h"
#include "orchestrator/cli/compare_options.h"
#include "orchestrator/cli/page_options.h"
#include "orchestrator/export/results.h"
#include "schema/ranking.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct CompareCommand {
  std::string db = "sweep.db", a, b, fail_on, metric;
  std::vector<std::string> more, only_a, only_b, trials;
  answers::CompareOptions options;
  TransferCommand transfer;
  bool json = false, csv = false;
};

// Prints the table for programs or the text for people, whichever the command line asks for.
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

int compare_trials(Io& io, const CompareCommand& o) {
  if (!o.b.empty())
    return refuse(io, {"--trials compares trials of one sweep: name that sweep alone, or none"});
  if (o.trials.size() < 2) return refuse(io, {"--trials wants at least two, as --trials 2bed,71ac"});
  const auto side = o.a.empty() ? read_latest_side(o.db) : read_compare_side(o.a, o.db, {});
  if (!side) return refuse(io, side.error());
  auto results = answers::trials_named(side->rows, o.trials);
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

// The mistake of the command line; nullopt: there is none.
std::optional<Error> wrong_in(const CompareCommand& o) {
  if (!o.transfer.wanted && !o.transfer.chart.empty() && !o.transfer.chart.ends_with(".html"))
    return Error{fmt::format(
        "-o {}: the page of a comparison is a FILE.html; with --transfer a picture as .svg or .png",
        o.transfer.chart)};
  if (o.trials.empty() && (o.a.empty() || o.b.empty()))
    return Error{"compare wants at least two sweeps, A and B, or --trials"};
  if (o.transfer.wanted && !o.more.empty()) return Error{"--transfer compares two sweeps: name A and B"};
  if (o.more.size() + 2 > answers::kMostSides)
    return Error{fmt::format("compare takes at most {} sweeps", answers::kMostSides)};
  if (!(o.options.false_discovery_rate > 0 && o.options.false_discovery_rate < 1))
    return Error{"--fdr wants a share between 0 and 1, such as 0.05"};
  return std::nullopt;
}

Expected<std::vector<answers::CompareSide>> read_sides(const CompareCommand& o) {
  std::vector<std::string> words = {o.a, o.b};
  words.insert(words.end(), o.more.begin(), o.more.end());
  std::vector<answers::CompareSide> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    SWEEP_GET(auto side, read_compare_side(words[i], o.db,
                                           i == 0   ? o.only_a
                                           : i == 1 ? o.only_b
                                                    : std::vector<std::string>()));
    out.push_back(std::move(side));
  }
  return out;
}

// Prints text or table on standard output, writes the page, and names on standard error what differs beside the results.
Expected<void> show_comparison(Io& io, const CompareCommand& o, std::span<const answers::CompareSide> sides,
                               std::span<const answers::Comparison> found) {
  const auto page = answers::compared_sweeps(sides, page_stamp().sentence());
  auto table = answers::compare_table(found, page.names, o.options);
  answers::mark_rehearsed_sides(table, sides);
  SWEEP_TRY(print(io, o, table,
                  answers::compare_text(found, page.names, o.options, io.out_is_terminal ? io.width : 0) +
                      answers::rehearsed_sides_line(sides)));
  SWEEP_TRY(
      write_page(io, o.transfer.chart, [&] { return answers::comparison_html(page, found, o.options); }));
  io.err << page.machines;
  if (o.json || o.csv) io.err << answers::alone_lines(found, false) << answers::uncompared_lines(found);
  return {};
}

int compare_sweeps(Io& io, CompareCommand o) {
  if (const auto wrong = wrong_in(o)) return refuse(io, *wrong);
  if (!o.metric.empty()) o.options.metric = o.metric;
  if (!o.trials.empty()) return compare_trials(io, o);
  if (!o.fail_on.empty()) {
    const auto share = answers::parse_share(o.fail_on, "regression");
    if (!share) return refuse(io, share.error());
    o.options.fail_on = *share;
  }
  const auto sides = read_sides(o);
  if (!sides) return refuse(io, sides.error());
  if (o.transfer.wanted) {
    const answers::SweepRows both[] = {(*sides)[0].rows, (*sides)[1].rows};
    o.transfer.json = o.json, o.transfer.csv = o.csv;
    o.transfer.options.metric = o.metric.empty() ? usual_metric(both) : o.metric;
    return print_transfer(io, *sides, o.transfer);
  }
  for (std::size_t i = 1; i < sides->size(); ++i)
    if (answers::is_same_sweep((*sides)[0], (*sides)[i]))
      io.err << fmt::format("A and {} are the same sweep: each configuration is compared with itself\n",
                            answers::side_letter(i));
  const auto found = answers::compare_sides(*sides, o.options);
  if (!found) return refuse(io, found.error());
  if (const auto shown = show_comparison(io, o, *sides, *found); !shown) return refuse(io, shown.error());
  i64 regressions = 0;
  for (const auto& one : *found) regressions += one.regressions;
  if (!o.options.fail_on || regressions == 0) return kAnswered;
  io.err << fmt::format("{} regression{}: worse by {} or more and significant, or no longer ok\n",
                        regressions, regressions == 1 ? "" : "s", o.fail_on);
  return kRegression;
}

}  // namespace

void add_compare(Registry r) {
  auto* c = r.app.add_subcommand("compare",
                                 "what got faster or slower between sweeps, with significance; does the "
                                 "order of one hold for the other");
  auto o = std::make_shared<CompareCommand>();
  c->add_option("A", o->a, "before: the name of a sweep, FILE.db (its latest) or FILE.db:NAME");
  c->add_option("B", o->b, "after: likewise");
  c->add_option("MORE", o->more, "further sweeps, likewise: each is compared with A");
  c->add_option("--db", o->db, "where sweeps are that are named without a file")
      ->envname("SWEEP_DB")
      ->capture_default_str()
      ->type_name("FILE");
  c->add_option("--metric", o->metric,
                "what to compare; absent: tokens_per_s_gpu, of --transfer what `best` ranks by");
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
