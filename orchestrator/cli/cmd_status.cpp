// sweep status: how far a sweep is.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/cli/board.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/live.h"
#include "orchestrator/run/conductor.h"

namespace sweep::cli {
namespace {

int watch_it(Io& io, Opened& opened, std::vector<report::Field> shown) {
  Board board(io, *opened.store, opened.sweep, std::move(shown));
  const auto end = run::watch(*opened.store, opened.sweep.id, board);
  if (!end) return refuse(io, end.error());
  return end->end == run::End::kInterrupted ? kInterrupted : kAnswered;
}

int status(Io& io, const Where& where, bool watch) {
  auto opened = open_sweep(where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  auto shown = varying_axes(*opened->store, opened->sweep.id);
  if (!shown) return refuse(io, shown.error());
  if (watch) return watch_it(io, *opened, std::move(*shown));
  const auto shot = run::take_snapshot(*opened->store, opened->sweep.id, 0);
  if (!shot) return refuse(io, shot.error());
  auto view = status_view(opened->sweep.name, *shot, *shown);
  if (auto added = add_details(view, *opened->store, opened->sweep, shot->counts.running, *shown); !added)
    return refuse(io, added.error());
  io.out << report::status_block(view, io.out_is_terminal ? static_cast<std::size_t>(io.width) : 0);
  return kAnswered;
}

}  // namespace

void add_status(Registry r) {
  auto* c = r.app.add_subcommand("status", "how far a sweep is, by outcome, and the best so far");
  auto where = std::make_shared<Where>();
  auto watch = std::make_shared<bool>(false);
  add_db(*c, *where);
  add_sweep(*c, *where);
  c->add_flag("--watch", *watch,
              "follow it while it runs: drawn in place on a terminal, else a line for each change");
  c->callback([r, where, watch] { r.chosen = [r, where, watch] { return status(r.io, *where, *watch); }; });
}

}  // namespace sweep::cli
