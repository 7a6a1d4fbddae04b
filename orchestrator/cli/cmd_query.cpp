// sweep query: people's own SQL, and saved queries.
#include <csignal>
#include <ostream>

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

}  // namespace sweep::cli
