// sweep list, models, hardware: what a database holds, and the names that a grid can use.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/tables/catalogue.h"
#include "orchestrator/answers/tables/sweeps_table.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/export/results.h"
#include "orchestrator/interop/recipes.h"
#include "orchestrator/run/retry_policy.h"

namespace sweep::cli {
namespace {

struct ListCommand {
  SweepSelector where;
  std::string what = "sweeps", name;  // name: of a model or hardware; empty: all
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
  const auto listed = answers::listed_sweeps(
      **store, [&](const store::SweepRow& sweep) { return driver::run_by(**store, sweep); });
  return listed ? print(io, answers::sweeps_table(*listed), o.json) : refuse(io, listed.error());
}

int list_recipes(Io& io, bool json) {
  Table table;
  table.columns = {"recipe"};
  for (const auto& recipe : interop::recipe_texts()) table.rows.push_back({std::string(recipe.name)});
  return print(io, table, json);
}

int show(Io& io, Expected<std::string> (*text_of)(const std::string&),
         Expected<nlohmann::json> (*document_of)(const std::string&), const std::string& name, bool as_json) {
  if (as_json) {
    const auto document = document_of(name);
    return document ? (print_document(io, *document), kAnswered) : refuse(io, document.error());
  }
  const auto text = text_of(name);
  if (!text) return refuse(io, text.error());
  io.out << *text;
  return kAnswered;
}

int show_models(Io& io, const std::string& name, bool as_json) {
  return show(io, answers::models_text, answers::models_json, name, as_json);
}

int show_hardware(Io& io, const std::string& name, bool as_json) {
  return show(io, answers::hardware_text, answers::hardware_json, name, as_json);
}

struct Catalogue {
  const char *name, *help, *entry;
  int (*show)(Io&, const std::string& name, bool as_json);
};

void add_catalogue(Registry r, const Catalogue& of) {
  auto* command = r.app.add_subcommand(of.name, of.help);
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, of.entry);
  command->add_flag("--json", *json, kJsonDocument);
  command->callback(
      [r, of, name, json] { r.chosen = [r, of, name, json] { return of.show(r.io, *name, *json); }; });
}

int list(Io& io, const ListCommand& o) {
  if (o.what == "models") return show_models(io, o.name, o.json);
  if (o.what == "hardware") return show_hardware(io, o.name, o.json);
  if (!o.name.empty())
    return refuse(io, {fmt::format("'{}': only models and hardware are listed by name", o.name),
                       ErrorKind::kUnsupported, o.name});
  return o.what == "recipes" ? list_recipes(io, o.json) : list_sweeps(io, o);
}

}  // namespace

void add_list(Registry r) {
  auto* c = r.app.add_subcommand("list", "the sweeps of a database, or the models, hardware or recipes");
  auto o = std::make_shared<ListCommand>();
  c->add_option("WHAT", o->what, "sweeps, models, hardware or recipes")
      ->check(CLI::IsMember({"sweeps", "models", "hardware", "recipes"}))
      ->capture_default_str();
  c->add_option("NAME", o->name, "one model with its dimensions, or one kind of hardware; absent: all");
  add_db(*c, o->where);
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return list(r.io, *o); }; });
}

// The earlier spellings of `list models` and `list hardware`.
void add_models(Registry r) {
  add_catalogue(r, {"models", "the same as `sweep list models`",
                    "a model of the catalogue; absent: all of them", show_models});
}

void add_hardware(Registry r) {
  add_catalogue(r, {"hardware", "the same as `sweep list hardware`",
                    "hardware of the catalogue; absent: all of it", show_hardware});
}

}  // namespace sweep::cli
