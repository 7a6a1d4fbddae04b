// sweep stop: asks the process that runs a sweep to stop.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/orchestrator_job.h"

namespace sweep::cli {
namespace {

// No process runs it: a job that is to run it may still wait in the queue.
int stop_waiting(Io& io, const Opened& opened, const std::string& db) {
  const auto job = driver::cancel_waiting_job(db, opened.sweep.name);
  if (!job) return refuse(io, job.error());
  if (*job) {
    io.err << fmt::format("cancelled Slurm job {}, which was to run sweep {}\n", **job,
                          answers::safe_text(opened.sweep.name));
    return kAnswered;
  }
  io.err << fmt::format("sweep {} is not running\n", answers::safe_text(opened.sweep.name));
  return kAnswered;
}

// The request waits in the database; whether anybody will read it is not known.
int stop_unresponsive(Io& io, const Opened& opened, const store::LeaseHolder& holder, const std::string& db,
                      bool now) {
  if (auto asked = opened.store->request_stop(opened.sweep.id, now); !asked) return refuse(io, asked.error());
  io.err << answers::safe_text(fmt::format(
                "sweep {}: {}. If it lives, it stops; what it holds `{}` takes over, and `sweep clean` ends",
                opened.sweep.name, driver::holder_text(holder),
                driver::take_over_text(opened.sweep.name, db)))
         << '\n';
  return kUnanswered;
}

int stop(Io& io, const SweepSelector& where, bool now) {
  auto opened = open_sweep(where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  auto holder = driver::holder_of(*opened->store, opened->sweep.id);
  // A clock that jumped makes a holder look silent: it is watched before it is called that.
  if (holder && *holder && store::stands_still(**holder))
    holder = driver::holder_of(*opened->store, opened->sweep.id, true);
  if (!holder) return refuse(io, holder.error());
  if (!*holder) return stop_waiting(io, *opened, where.db);
  if (!driver::is_responsive(**holder)) return stop_unresponsive(io, *opened, **holder, where.db, now);
  if (auto asked = opened->store->request_stop(opened->sweep.id, now); !asked)
    return refuse(io, asked.error());
  if (store::stands_still(**holder)) {
    io.err << answers::safe_text(fmt::format("sweep {}: {}. Once it goes on, it stops", opened->sweep.name,
                                             driver::holder_text(**holder)))
           << '\n';
    return kUnanswered;
  }
  io.err << fmt::format("asked {} to stop sweep {}{}\n", driver::holder_name(**holder),
                        answers::safe_text(opened->sweep.name),
                        now ? " at once" : " after the attempts it has handed out");
  return kAnswered;
}

}  // namespace

void add_stop(Registry r) {
  auto* c = r.app.add_subcommand("stop", "stop a running sweep; `sweep resume` continues it");
  auto where = std::make_shared<SweepSelector>();
  auto now = std::make_shared<bool>(false);
  add_db(*c, *where);
  add_sweep(*c, *where);
  add_json(*c, kJsonErrors);
  c->add_flag("--now", *now, "end running attempts at once; absent: let them finish");
  c->callback([r, where, now] { r.chosen = [r, where, now] { return stop(r.io, *where, *now); }; });
}

}  // namespace sweep::cli
