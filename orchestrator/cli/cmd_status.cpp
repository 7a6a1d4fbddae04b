// sweep status: how far a sweep is.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/cli/live.h"
#include "orchestrator/report/tables.h"
#include "orchestrator/run/conductor.h"

namespace sweep::cli {
namespace {

int watch_it(Io& io, Opened& opened, std::vector<report::Field> shown) {
  Live live(io, opened.sweep.name, std::move(shown), false);
  const auto end = run::watch(*opened.store, opened.sweep.id, live);
  live.close();
  if (!end) return refuse(io, end.error());
  return end->end == run::End::kInterrupted ? kInterrupted : kAnswered;
}

int status(Io& io, const Where& where, bool watch) {
  auto opened = open_sweep(where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  auto shown = varying_axes(*opened->store, opened->sweep.id);
  if (!shown) return refuse(io, shown.error());
  if (watch) return watch_it(io, *opened, std::move(*shown));
  const auto shot = run::take_snapshot(*opened->store, opened->sweep.id, 0, std::nullopt);
  if (!shot) return refuse(io, shot.error());
  auto view = status_view(opened->sweep.name, *shot, *shown);
  const auto holder = opened->store->lease(opened->sweep.id);
  if (!holder) return refuse(io, holder.error());
  if (*holder) view.now.push_back(fmt::format("run by process {} on {}", (*holder)->pid, (*holder)->host));
  if (!*holder && shot->counts.running > 0)
    view.now.push_back("nobody runs it: the last run ended without a word; `sweep resume` goes on");
  io.out << report::status_block(view, io.out_is_terminal ? io.width : 0);
  const auto events = opened->store->events(opened->sweep.id, 5);
  if (events && !events->rows.empty()) io.out << "recent events\n" << report::to_text_raw(*events, io.width);
  return kAnswered;
}

}  // namespace

void add_status(Registry r) {
  auto* c = r.app.add_subcommand("status", "how far a sweep is, by outcome, and the best so far");
  auto where = std::make_shared<Where>();
  auto watch = std::make_shared<bool>(false);
  add_db(*c, *where);
  add_sweep(*c, *where);
  c->add_flag("--watch", *watch, "follow it while it runs");
  c->callback([r, where, watch] { r.chosen = [r, where, watch] { return status(r.io, *where, *watch); }; });
}

}  // namespace sweep::cli
