// sweep compare: what got faster or slower between two sweeps, with significance.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "orchestrator/cli/command.h"
#include "orchestrator/export/csv.h"
#include "orchestrator/export/json.h"
#include "orchestrator/report/format.h"
#include "orchestrator/report/rehearsed.h"
#include "orchestrator/report/statistics/best.h"
#include "orchestrator/report/statistics/compare.h"
#include "orchestrator/report/tables/compare_print.h"
#include "schema/codec.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct CompareCommand {
  std::string db = "sweep.db", a, b, fail_on;
  report::CompareOptions options;
  bool json = false, csv = false;
};

// NAME in --db, FILE.db (its latest sweep) or FILE.db:NAME.
SweepSelector side_of(const std::string& word, const std::string& db) {
  std::error_code ec;
  if (std::filesystem::is_regular_file(word, ec)) return {word, std::nullopt};
  const auto colon = word.rfind(':');
  if (colon != std::string::npos && std::filesystem::is_regular_file(word.substr(0, colon), ec))
    return {word.substr(0, colon), word.substr(colon + 1)};
  return {db, word};
}

struct Side {
  store::SweepRow sweep;
  std::vector<ResultRow> rows;
  std::vector<Environment> nodes;
};

Expected<Side> read_side(const SweepSelector& where) {
  auto opened = open_sweep(where, store::Mode::kReadOnly);
  if (!opened) return tl::unexpected(opened.error());
  auto rows = opened->store->results(opened->sweep.id);
  if (!rows) return tl::unexpected(rows.error());
  auto nodes = opened->store->environments(opened->sweep.id);
  if (!nodes) return tl::unexpected(nodes.error());
  return Side{std::move(opened->sweep), std::move(*rows), std::move(*nodes)};
}

// The values of one fact over all nodes of a side.
std::set<std::string> values_of(const Side& side, const std::string& fact) {
  std::set<std::string> out;
  for (const Environment& node : side.nodes) {
    if (fact == "host") out.insert(report::safe_text(node.host));
    const auto facts = parse_json(node.facts);
    if (facts && facts->is_object() && facts->contains(fact))
      out.insert(report::safe_text(dump(facts->at(fact))));
  }
  return out;
}

// What differs between the machines and builds of the two: the first suspects.
void say_differences(Io& io, const Side& a, const Side& b) {
  for (const char* fact :
       {"host", "gpus", "cpu", "driver", "driver_cuda", "nccl", "libtorch", "kernel", "version", "build"}) {
    const auto before = values_of(a, fact), after = values_of(b, fact);
    if (before == after) continue;
    io.err << fmt::format("{}: {} in A, {} in B\n", fact,
                          before.empty() ? "unknown" : fmt::format("{}", fmt::join(before, ", ")),
                          after.empty() ? "unknown" : fmt::format("{}", fmt::join(after, ", ")));
  }
}

// "A", "B", "A and B"; empty: both were measured.
std::string rehearsed_sides(const Side& a, const Side& b) {
  const bool first = is_rehearsal(a.sweep.name), second = is_rehearsal(b.sweep.name);
  return first && second ? "A and B" : first ? "A" : second ? "B" : "";
}

// For programs. `sides`: a column that names them where one was rehearsed.
Table comparison(const report::Comparison& found, const report::CompareOptions& options,
                 const std::string& sides) {
  Table table = report::compare_table(found, options);
  if (sides.empty()) return table;
  table.columns.emplace_back("rehearsed");
  for (auto& row : table.rows) row.emplace_back(sides);
  return table;
}

int compare_sweeps(Io& io, CompareCommand o) {
  if (!o.fail_on.empty()) {
    const auto share = report::parse_share(o.fail_on, "regression");
    if (!share) return refuse(io, share.error());
    o.options.fail_on = *share;
  }
  if (!(o.options.false_discovery_rate > 0 && o.options.false_discovery_rate < 1))
    return refuse(io, {"--fdr wants a share between 0 and 1, such as 0.05"});
  const auto a = read_side(side_of(o.a, o.db));
  if (!a) return refuse(io, a.error());
  const auto b = read_side(side_of(o.b, o.db));
  if (!b) return refuse(io, b.error());
  const auto found = report::compare(a->rows, b->rows, o.options);
  if (!found) return refuse(io, found.error());
  if (found->pairs.empty() && found->unanswered == 0)
    return refuse(io, {fmt::format("'{}' and '{}' have no configuration in common ({} and {} configurations)",
                                   report::safe_text(a->sweep.name), report::safe_text(b->sweep.name),
                                   a->rows.size(), b->rows.size())});
  const auto sides = rehearsed_sides(*a, *b);
  Expected<void> written;
  if (o.json)
    written = exports::write_json(io.out, comparison(*found, o.options, sides));
  else if (o.csv)
    written = exports::write_csv(io.out, comparison(*found, o.options, sides), {});
  else
    written = write_output(io, "",
                           report::compare_text(*found, o.options, io.out_is_terminal ? io.width : 0) +
                               (sides.empty() ? "" : sides + ": " + report::rehearsed_line(true)));
  if (!written) return refuse(io, written.error());
  say_differences(io, *a, *b);
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
  auto* c =
      r.app.add_subcommand("compare", "what got faster or slower between two sweeps, with significance");
  auto o = std::make_shared<CompareCommand>();
  c->add_option("A", o->a, "before: the name of a sweep, FILE.db (its latest) or FILE.db:NAME")->required();
  c->add_option("B", o->b, "after: likewise")->required();
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
  auto* json = c->add_flag("--json", o->json, "as a JSON array of objects, values as stored");
  c->add_flag("--csv", o->csv, "as CSV, values as stored")->excludes(json);
  c->callback([r, o] { r.chosen = [r, o] { return compare_sweeps(r.io, *o); }; });
}

}  // namespace sweep::cli
