// sweep explain: all that is known of one trial, as text, JSON or a page.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/trial_page.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/tables/explain.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/page_options.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct ExplainCommand {
  SweepSelector where;
  std::string id, output;
  bool json = false;
};

int write_page(Io& io, Opened& opened, const ExplainCommand& o) {
  auto page = answers::trial_page(*opened.store, opened.sweep, o.id);
  if (!page) return refuse(io, page.error());
  page->db = o.where.db, page->made = page_stamp().sentence();
  if (const auto written = write_output(io, o.output, answers::trial_html(*page)); !written)
    return refuse(io, written.error());
  io.err << fmt::format("{}: trial {} of {}\n", o.output, page->view.entry.id,
                        answers::safe_text(opened.sweep.name))
         << answers::rehearsed_line(is_rehearsal(opened.sweep.name));
  return kAnswered;
}

int explain(Io& io, const ExplainCommand& o) {
  if (!o.output.empty() && !o.output.ends_with(".html"))
    return refuse(io, {fmt::format("-o {}: the page of a trial is a FILE.html", o.output)});
  auto opened = open_sweep_of(o.where, o.id);
  if (!opened) return refuse(io, opened.error());
  if (!o.output.empty()) return write_page(io, *opened, o);
  const auto view = answers::explain_view(*opened->store, opened->sweep.id, o.id);
  if (!view) return refuse(io, view.error());
  if (o.json) return print_document(io, answers::explain_json(*view, opened->sweep.name)), kAnswered;
  io.out << answers::explain(*view, io.out_is_terminal ? io.width : 0)
         << answers::rehearsed_line(is_rehearsal(opened->sweep.name));
  return kAnswered;
}

}  // namespace

void add_explain(Registry r) {
  auto* c = r.app.add_subcommand("explain",
                                 "one trial: its configuration, why it was pruned or how its attempts ended");
  auto o = std::make_shared<ExplainCommand>();
  c->add_option("ID", o->id, "trial id, or the beginning of one")->required();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  auto* json = c->add_flag("--json", o->json, kJsonDocument);
  c->add_option("-o,--output", o->output,
                "FILE.html: a page with the time of a step by rank, memory, load, every rank's record, logs")
      ->excludes(json)
      ->type_name("FILE");
  c->callback([r, o] { r.chosen = [r, o] { return explain(r.io, *o); }; });
}

}  // namespace sweep::cli
