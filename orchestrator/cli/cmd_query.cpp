// sweep query, export: people's own SQL, and every row for other programs.
#include <csignal>
#include <ostream>
#include <sstream>

#include "orchestrator/cli/command.h"
#include "orchestrator/cli/saved_queries.h"
#include "orchestrator/export/csv.h"
#include "orchestrator/export/json.h"
#include "orchestrator/report/tables.h"

namespace sweep::cli {
namespace {

struct QueryCommand {
  Where where;
  std::string sql;
  std::vector<std::string> set;
  bool json = false, csv = false, list = false;
};

volatile std::sig_atomic_t interrupted = 0;

// While it lives, Ctrl-C asks instead of ending the process.
class AskOnInterrupt {
 public:
  AskOnInterrupt() : before_(std::signal(SIGINT, [](int) { interrupted = 1; })) {}
  ~AskOnInterrupt() { std::signal(SIGINT, before_); }
  AskOnInterrupt(const AskOnInterrupt&) = delete;
  AskOnInterrupt& operator=(const AskOnInterrupt&) = delete;

 private:
  void (*before_)(int);
};

Expected<store::QueryOptions> query_options(const QueryCommand& o) {
  store::QueryOptions out;
  for (const auto& word : o.set) {
    const auto at = word.find('=');
    if (at == std::string::npos || at == 0) return fail("--set wants NAME=VALUE, not '" + word + "'");
    out.values.emplace_back(word.substr(0, at), word.substr(at + 1));
  }
  out.stop = [] { return interrupted != 0; };
  return out;
}

int list_queries(Io& io) {
  Table table;
  table.columns = {"name", "what it answers", "where"};
  for (auto& query : saved_queries(query_folder()))
    table.rows.push_back({std::move(query.name), std::move(query.sentence), std::move(query.place)});
  io.out << report::to_text_raw(table, io.out_is_terminal ? io.width : 0);
  return kAnswered;
}

int query(Io& io, const QueryCommand& o) {
  if (o.list) return list_queries(io);
  if (o.sql.empty())
    return refuse(io, {"give one SELECT statement, or the name of a saved query (--list shows them)"});
  std::string sql = o.sql;
  if (is_query_name(sql)) {
    auto saved = find_query(query_folder(), sql);
    if (!saved) return refuse(io, saved.error());
    sql = std::move(saved->sql);
  }
  const auto options = query_options(o);
  if (!options) return refuse(io, options.error());
  auto store = store::Store::open(o.where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  const AskOnInterrupt asking;
  const auto table = (*store)->query(sql, *options);
  if (!table) {
    const int code = refuse(io, table.error());
    return table.error().message == store::kStopped ? kInterrupted : code;
  }
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
  auto o = std::make_shared<QueryCommand>();
  c->add_option("SQL", o->sql, "one SELECT statement, or the name of a saved query");
  add_db(*c, o->where);
  c->add_option("--set", o->set, "NAME=VALUE for :NAME in the SQL; may be given several times");
  c->add_flag("--list", o->list,
              "the saved queries: built in, and yours in ~/.config/sweep/queries/NAME.sql");
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
