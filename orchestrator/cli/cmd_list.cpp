// sweep list: what a database holds, and the names that a grid can use.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/cli/catalogues.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/sweeps_table.h"
#include "orchestrator/export/json.h"
#include "orchestrator/interop/recipes.h"
#include "orchestrator/run/retry_policy.h"

namespace sweep::cli {
namespace {

struct ListCommand {
  SweepSelector where;
  std::string what = "sweeps";
  bool json = false;
};

int print(Io& io, const Table& table, bool json) {
  if (json) {
    const auto written = exports::write_json(io.out, table);
    return written ? kAnswered : refuse(io, written.error());
  }
  io.out << answers::to_text_raw(table, io.out_is_terminal ? io.width : 0);
  return kAnswered;
}

int list_sweeps(Io& io, const ListCommand& o) {
  if (const auto there = database_is_there(o.where.db); !there) return refuse(io, there.error());
  auto store = run::open_store(o.where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  const auto table = sweeps_table(**store);
  return table ? print(io, *table, o.json) : refuse(io, table.error());
}

int list_recipes(Io& io, bool json) {
  Table table;
  table.columns = {"recipe"};
  for (const auto& recipe : interop::recipe_texts()) table.rows.push_back({std::string(recipe.name)});
  return print(io, table, json);
}

int list(Io& io, const ListCommand& o) {
  if (o.what == "models") return show_models(io, "", o.json);
  if (o.what == "hardware") return show_hardware(io, "", o.json);
  return o.what == "recipes" ? list_recipes(io, o.json) : list_sweeps(io, o);
}

}  // namespace

void add_list(Registry r) {
  auto* c = r.app.add_subcommand("list", "the sweeps of a database, or the models, hardware or recipes");
  auto o = std::make_shared<ListCommand>();
  c->add_option("WHAT", o->what, "sweeps, models, hardware or recipes")
      ->check(CLI::IsMember({"sweeps", "models", "hardware", "recipes"}))
      ->capture_default_str();
  add_db(*c, o->where);
  c->add_flag("--json", o->json, "as JSON (docs/json.md)");
  c->callback([r, o] { r.chosen = [r, o] { return list(r.io, *o); }; });
}

}  // namespace sweep::cli
