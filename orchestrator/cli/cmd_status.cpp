// sweep status: how far a sweep is.

#include <csignal>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/status_board.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/sweep_status.h"
#include "orchestrator/run/run_sweep.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

int watch_it(Io& io, Opened& opened, std::vector<answers::Field> shown) {
  std::signal(SIGPIPE, SIG_DFL);  // `| head` ends it; it writes no file
  StatusBoard board(io, *opened.store, opened.sweep, std::move(shown));
  const auto end = run::watch(*opened.store, opened.sweep.id, board, driver::job_word_on);
  if (!end) return refuse(io, end.error());
  return end->end == run::End::kInterrupted ? kInterrupted : kAnswered;
}

int status(Io& io, const SweepSelector& where, bool watch, bool as_json) {
  auto opened = open_sweep(where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  auto shown = answers::varying_axes(*opened->store, opened->sweep.id);
  if (!shown) return refuse(io, shown.error());
  if (watch) return watch_it(io, *opened, std::move(*shown));
  const auto shot = driver::snapshot_of(*opened->store, opened->sweep);
  if (!shot) return refuse(io, shot.error());
  if (as_json) {
    constexpr i64 kListedEvents = 20;
    const auto document = driver::status_document(*opened->store, opened->sweep, *shot, kListedEvents);
    return document ? (print_document(io, *document), kAnswered) : refuse(io, document.error());
  }
  auto view = answers::status_view(driver::progress_of(opened->sweep, *shot), *shown);
  if (auto added = driver::add_details(view, *opened->store, opened->sweep, *shown); !added)
    return refuse(io, added.error());
  driver::add_waiting_job(view, *opened->store, opened->sweep, where.db);
  io.out << answers::status_block(view, io.out_is_terminal ? static_cast<std::size_t>(io.width) : 0)
         << answers::rehearsed_line(is_rehearsal(opened->sweep.name));
  return kAnswered;
}

}  // namespace

void add_status(Registry r) {
  auto* c = r.app.add_subcommand("status",
                                 "progress of a sweep: trials by outcome, the best so far, what runs now");
  auto where = std::make_shared<SweepSelector>();
  auto watch = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  add_db(*c, *where);
  add_sweep(*c, *where);
  auto* follow = c->add_flag("--watch", *watch,
                             "follow it while it runs: redrawn on a terminal, else one line for each change");
  c->add_flag("--json", *json, kJsonDocument)->excludes(follow);
  c->callback([r, where, watch, json] {
    r.chosen = [r, where, watch, json] { return status(r.io, *where, *watch, *json); };
  });
}

}  // namespace sweep::cli
