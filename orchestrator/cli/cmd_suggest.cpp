// sweep suggest: defaults for batch, context and recomputation, by what was measured in this database.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/tables/suggest.h"
#include "orchestrator/cli/command.h"

namespace sweep::cli {
namespace {

struct SuggestCommand {
  SweepSelector where;
  std::string model;
  bool json = false;
};

int suggest(Io& io, const SuggestCommand& o) {
  auto store = store::Store::open(o.where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  auto all = answers::measured_rows(**store, o.model);
  if (!all) return refuse(io, all.error());
  const auto found = answers::suggestions(std::move(*all));
  if (o.json)
    print_document(io, answers::suggestions_json(found));
  else
    io.out << answers::suggestions_yaml(found);
  if (!found.empty()) return kAnswered;
  io.err << fmt::format("sweep: {} has no measured trial{}; run a grid first, or `sweep predict`\n",
                        answers::safe_text(o.where.db),
                        o.model.empty() ? "" : " of " + answers::safe_text(o.model));
  return kUnanswered;
}

}  // namespace

void add_suggest(Registry r) {
  auto* c = r.app.add_subcommand("suggest",
                                 "defaults for batch, context and recomputation, by what this database has "
                                 "measured, as YAML for `base`");
  auto o = std::make_shared<SuggestCommand>();
  add_db(*c, o->where);
  c->add_option("MODEL", o->model, "of this model only");
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return suggest(r.io, *o); }; });
}

}  // namespace sweep::cli
