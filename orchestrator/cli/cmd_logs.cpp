// sweep logs, ingest: what ranks wrote, and taking in a spool by hand.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/tables/rank_log.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/spool_root.h"
#include "orchestrator/run/recovery.h"

namespace sweep::cli {
namespace {

struct LogOptions {
  SweepSelector where;
  answers::LogRequest wanted;
  bool json = false;
};

int logs(Io& io, const LogOptions& o) {
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto log =
      answers::rank_log(*opened->store, opened->sweep.id, driver::spool_root_of(o.where.db), o.wanted);
  if (!log) return refuse(io, log.error());
  if (o.json) {
    print_document(io, answers::rank_log_json(*log));
    return kAnswered;
  }
  io.err << fmt::format("attempt {} of trial {}, rank {}: {}\n", log->attempt, log->trial, log->rank,
                        log->file.string());
  const auto written = write_output(io, "", log->text);
  return written ? kAnswered : refuse(io, written.error());
}

int ingest(Io& io, const SweepSelector& where) {
  auto opened = open_sweep(where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto holder = opened->store->take_lease(opened->sweep.id);
  if (!holder) return refuse(io, holder.error());
  if (*holder)
    return refuse(io, {fmt::format("sweep {}: {}; it stores its results itself", opened->sweep.name,
                                   driver::standing_text(**holder))});
  if (const auto left = opened->store->open_allocations(opened->sweep.id); left && left->empty())
    io.err << fmt::format("nothing to store: no run of sweep {} left results behind\n", opened->sweep.name);
  ProgressLine live(io, opened->sweep, {}, false);
  const auto recovered = run::recover(*opened->store, opened->sweep.id, live, {.leave = true});
  const auto released = opened->store->release_lease(opened->sweep.id);
  if (!recovered) return refuse(io, recovered.error());
  return released ? kAnswered : refuse(io, released.error());
}

}  // namespace

void add_logs(Registry r) {
  auto* c = r.app.add_subcommand("logs", "the log of one rank of a trial's last attempt");
  auto o = std::make_shared<LogOptions>();
  c->add_option("ID", o->wanted.trial, "trial id, or the beginning of one")->required();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--rank", o->wanted.rank, "which rank")->capture_default_str();
  c->add_option("--attempt", o->wanted.attempt, "which attempt; absent: the last one");
  c->add_flag("--json", o->json, "as JSON (docs/json.md)");
  c->callback([r, o] { r.chosen = [r, o] { return logs(r.io, *o); }; });
}

void add_ingest(Registry r) {
  auto* c = r.app.add_subcommand(
      "ingest", "store the results that a run left in its spool when it died, without running anything");
  auto where = std::make_shared<SweepSelector>();
  add_sweep(*c, *where);
  add_db(*c, *where);
  c->callback([r, where] { r.chosen = [r, where] { return ingest(r.io, *where); }; });
}

}  // namespace sweep::cli
