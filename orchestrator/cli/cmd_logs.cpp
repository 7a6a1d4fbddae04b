// sweep logs, ingest: what ranks wrote, and taking in a spool by hand.
#include <fmt/format.h>

#include <ostream>

#include "base/files.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/run/recovery.h"
#include "schema/spool.h"

namespace sweep::cli {
namespace {

struct LogOptions {
  SweepSelector where;
  std::string trial;
  i64 rank = 0;
  std::optional<i64> attempt;
  bool json = false;
};

int logs(Io& io, const LogOptions& o) {
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto id = opened->store->find_trial(opened->sweep.id, o.trial);
  if (!id) return refuse(io, id.error());
  const auto attempts = opened->store->attempts(opened->sweep.id, *id);
  if (!attempts) return refuse(io, attempts.error());
  const store::AttemptRow* chosen = nullptr;
  for (const auto& row : *attempts)
    if (!o.attempt || row.id == *o.attempt) chosen = &row;
  if (!chosen)
    return refuse(io, {fmt::format("trial {} has no attempt{}; it was never started", *id,
                                   o.attempt ? fmt::format(" {}", *o.attempt) : "")});
  if (o.rank < 0 || o.rank >= chosen->attempt.trial.world())
    return refuse(io, {fmt::format("--rank {}: the trial has ranks 0 to {}", o.rank,
                                   chosen->attempt.trial.world() - 1)});
  const auto spool_root = std::filesystem::absolute(o.where.db).string() + ".spool";
  const auto dir = spool::attempt_dir(std::filesystem::path(spool_root) / chosen->allocation, chosen->id);
  const auto bytes = files::read(spool::rank_log(dir, o.rank));
  if (!bytes) return refuse(io, bytes.error());
  if (o.json) {
    print_document(io, {{"trial", *id},
                        {"attempt", chosen->id},
                        {"rank", o.rank},
                        {"file", spool::rank_log(dir, o.rank).string()},
                        {"text", *bytes}});
    return kAnswered;
  }
  io.err << fmt::format("attempt {} of trial {}, rank {}: {}\n", chosen->id, *id, o.rank,
                        spool::rank_log(dir, o.rank).string());
  const auto written = write_output(io, "", *bytes);
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
  c->add_option("ID", o->trial, "trial id, or the beginning of one")->required();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--rank", o->rank, "which rank")->capture_default_str();
  c->add_option("--attempt", o->attempt, "which attempt; absent: the last one");
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
