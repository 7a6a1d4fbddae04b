// sweep query: people's own SQL.
#include <ostream>

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

}  // namespace sweep::cli
