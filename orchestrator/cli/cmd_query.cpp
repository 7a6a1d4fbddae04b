// sweep query, export: people's own SQL, and every row for other programs.
#include <ostream>
#include <sstream>

#include "orchestrator/cli/command.h"
#include "orchestrator/export/csv.h"
#include "orchestrator/export/json.h"
#include "orchestrator/report/tables.h"

namespace sweep::cli {
namespace {

struct QueryOptions {
  Where where;
  std::string sql;
  bool json = false, csv = false;
};

int query(Io& io, const QueryOptions& o) {
  auto store = store::Store::open(o.where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  const auto table = (*store)->query(o.sql);
  if (!table) return refuse(io, table.error());
  Expected<void> written;
  if (o.json)
    written = exports::write_json(io.out, *table);
  else if (o.csv)
    written = exports::write_csv(io.out, *table, {true});
  else
    written = write_output(io, "", report::to_text_raw(*table, io.out_is_terminal ? io.width : 0));
  return written ? kAnswered : refuse(io, written.error());
}

struct ExportOptions {
  Where where;
  std::string format, output;
  bool raw_text = false;
};

int export_rows(Io& io, const ExportOptions& o) {
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto rows = opened->store->results(opened->sweep.id);
  if (!rows) return refuse(io, rows.error());
  std::ostringstream text;
  const auto source = exports::rows_of(*rows);
  auto written = o.format == "csv"    ? exports::write_csv(text, source, {o.raw_text})
                 : o.format == "json" ? exports::write_json(text, source)
                                      : exports::write_json_lines(text, source);
  if (written) written = write_output(io, o.output, text.str());
  return written ? kAnswered : refuse(io, written.error());
}

}  // namespace

void add_query(Registry r) {
  auto* c = r.app.add_subcommand("query", "read-only SQL over the results (view: results)");
  auto o = std::make_shared<QueryOptions>();
  c->add_option("SQL", o->sql, "one SELECT statement")->required();
  add_db(*c, o->where);
  auto* json = c->add_flag("--json", o->json, "as a JSON array of objects");
  c->add_flag("--csv", o->csv, "as CSV")->excludes(json);
  c->callback([r, o] { r.chosen = [r, o] { return query(r.io, *o); }; });
}

void add_export(Registry r) {
  auto* c = r.app.add_subcommand("export", "every trial with every axis and metric, for other programs");
  auto o = std::make_shared<ExportOptions>();
  c->add_option("FORMAT", o->format, "csv, json or jsonl")
      ->required()
      ->check(CLI::IsMember({"csv", "json", "jsonl"}));
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("-o,--output", o->output, "the file to write; absent: standard output");
  c->add_flag("--raw-text", o->raw_text, "CSV: do not guard text that a spreadsheet would run as a formula");
  c->callback([r, o] { r.chosen = [r, o] { return export_rows(r.io, *o); }; });
}

}  // namespace sweep::cli
