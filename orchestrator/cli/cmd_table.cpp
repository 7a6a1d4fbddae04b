// sweep table: the tables of published benchmarks, made from a sweep.
#include <algorithm>
#include <ostream>
#include <sstream>

#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/answers/tables/source_tables.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/export/results.h"
#include "schema/ranking.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct TableCommand {
  SweepSelector where;
  std::string kind, output, metric;
  answers::SourceTableOptions options;
  bool json = false, csv = false, markdown = false;
};

int print_table(Io& io, const TableCommand& o) {
  if (o.options.epoch_tokens && !(*o.options.epoch_tokens > 0))
    return refuse(io, {"--epoch-tokens wants a number of tokens above 0"});
  if (!o.metric.empty())
    if (const auto metric = answers::resolve_ranked(o.metric); !metric) return refuse(io, metric.error());
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto rows = opened->store->results(opened->sweep.id);
  if (!rows) return refuse(io, rows.error());
  const bool rehearsed = is_rehearsal(opened->sweep.name);
  answers::SourceTableOptions options = o.options;
  options.metric = o.metric.empty() ? usual_metric(*rows) : o.metric;
  auto answer = answers::source_table(*answers::source_table_from(o.kind), *rows, options);
  if (rehearsed && (o.json || o.csv)) answers::mark_rehearsed(answer.table);
  std::ostringstream text;
  Expected<void> written;
  if (o.json)
    written = exports::write_json(text, answer.table);
  else if (o.csv)
    written = exports::write_csv(text, answer.table, {});
  else if (o.markdown)
    text << answers::to_markdown(answers::for_people(answer.table))
         << (rehearsed ? "\n" + answers::rehearsed_line(true) : "");
  else
    text << answers::to_text(answers::for_people(answer.table), io.out_is_terminal ? io.width : 0)
         << answers::rehearsed_line(rehearsed);
  if (written) written = write_output(io, o.output, text.str());
  if (!written) return refuse(io, written.error());
  for (const auto& note : answer.notes) io.err << note << '\n';
  if (std::ranges::find(answer.table.columns, "cost_per_mt") != answer.table.columns.end()) {
    for (const auto& price : answers::price_sentences(*rows, answers::today()))
      io.err << "price: " << price << '\n';
  }
  return kAnswered;
}

}  // namespace

void add_table(Registry r) {
  auto* c = r.app.add_subcommand(
      "table", "the tables of published benchmarks: cost, batch, scaling, max-batch, max-model, stages");
  auto o = std::make_shared<TableCommand>();
  std::vector<std::string> kinds(answers::source_table_names().begin(), answers::source_table_names().end());
  c->add_option(
       "KIND", o->kind,
       "cost (context x batch: MT/hour, MFU, $/MT), batch (memory, usage, time, star), scaling (best by "
       "nodes), max-batch (DDP against ZeRO), max-model (the largest that fits) or stages (each change on "
       "top of those before it)")
      ->required()
      ->check(CLI::IsMember(kinds));
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--epoch-tokens", o->options.epoch_tokens,
                "max-batch: tokens of an epoch; adds the time one takes");
  c->add_option("--metric", o->metric, "stages: the metric that they are compared by; absent: as for `best`");
  auto* json = c->add_flag("--json", o->json, "as a JSON array of objects, values as stored");
  auto* csv = c->add_flag("--csv", o->csv, "as CSV, values as stored");
  auto* markdown = c->add_flag("--markdown", o->markdown, "as a Markdown table");
  csv->excludes(json);
  markdown->excludes(json)->excludes(csv);
  c->add_option("-o,--output", o->output, "the file to write; absent: standard output");
  c->callback([r, o] { r.chosen = [r, o] { return print_table(r.io, *o); }; });
}

}  // namespace sweep::cli
