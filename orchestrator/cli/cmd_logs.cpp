// sweep logs, ingest: what ranks wrote, and taking in a spool by hand.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "base/files.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/spool_root.h"
#include "orchestrator/run/recovery.h"
#include "schema/spool.h"

namespace sweep::cli {
namespace {

struct LogOptions {
  SweepSelector where;
  std::string trial;           // the id, or its beginning
  std::optional<i64> attempt;  // nullopt: the last one
  i64 rank = 0;
  bool json = false;
};
struct RankLog {
  std::string trial;
  i64 attempt = 0, rank = 0;
  std::filesystem::path file;
  std::string text;
};

Expected<RankLog> rank_log(store::Store& store, i64 sweep, const LogOptions& wanted) {
  SWEEP_GET(const auto id, store.find_trial(sweep, wanted.trial));
  SWEEP_GET(const auto attempts, store.attempts(sweep, id));
  const store::AttemptRow* chosen = nullptr;
  for (const auto& row : attempts)
    if (!wanted.attempt || row.id == *wanted.attempt) chosen = &row;
  if (!chosen)
    return fail(fmt::format("trial {} has no attempt{}; it was never started", id,
                            wanted.attempt ? fmt::format(" {}", *wanted.attempt) : ""));
  const auto spools = driver::spool_root_of(wanted.where.db);
  const i64 world = chosen->attempt.trial.world();
  if (wanted.rank < 0 || wanted.rank >= world)
    return fail(fmt::format("--rank {}: the trial has ranks 0 to {}", wanted.rank, world - 1));
  const auto folder = spool::attempt_dir(spools / chosen->allocation, chosen->id);
  RankLog out{id, chosen->id, wanted.rank, spool::rank_log(folder, wanted.rank), ""};
  auto text = files::read(out.file);
  if (!text)
    return tl::unexpected(retold(
        text.error(),
        fmt::format("{}; logs lie in {} where the run wrote them: imported results have none, and a copy "
                    "of the database needs that folder beside it",
                    text.error().message, spools.string())));
  out.text = std::move(*text);
  return out;
}

int logs(Io& io, const LogOptions& o) {
  auto opened = open_sweep_of(o.where, o.trial);
  if (!opened) return refuse(io, opened.error());
  const auto log = rank_log(*opened->store, opened->sweep.id, o);
  if (!log) return refuse(io, log.error());
  if (o.json) {
    print_document(io, {{"trial", log->trial},
                        {"attempt", log->attempt},
                        {"rank", log->rank},
                        {"file", log->file.string()},
                        {"text", log->text}});
    return kAnswered;
  }
  io.err << fmt::format("attempt {} of trial {}, rank {}: {}\n", log->attempt, log->trial, log->rank,
                        log->file.string());
  const auto written = write_output(io, "", log->text);
  return written ? kAnswered : refuse(io, written.error());
}

// Counts what is stored.
class Ingestion : public ProgressLine {
 public:
  using ProgressLine::ProgressLine;
  void on_result(const PlanEntry& entry, const Result& result) override {
    ++stored_[std::string(to_string(result.outcome))];
    ProgressLine::on_result(entry, result);
  }
  const std::map<std::string, i64>& stored() const { return stored_; }

 private:
  std::map<std::string, i64> stored_;  // results by outcome
};

}  // namespace

int store_left_results(Io& io, const SweepSelector& where) {
  auto opened = open_sweep(where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto holder = opened->store->take_lease(opened->sweep.id);
  if (!holder) return refuse(io, holder.error());
  if (*holder)
    return refuse(io, {fmt::format("sweep {}: {}; it stores its results itself", opened->sweep.name,
                                   driver::holder_text(**holder))});
  if (const auto left = opened->store->open_allocations(opened->sweep.id); left && left->empty())
    io.err << fmt::format("nothing to store: no run of sweep {} left results behind\n", opened->sweep.name);
  Ingestion live(io, opened->sweep, {}, false);
  const auto recovered = run::recover(*opened->store, opened->sweep.id, live, {.leave = true});
  const auto released = opened->store->release_lease(opened->sweep.id);
  if (!recovered) return refuse(io, recovered.error());
  if (!released) return refuse(io, released.error());
  if (io.json)
    print_document(io, {{"sweep", opened->sweep.name}, {"db", where.db}, {"stored", live.stored()}});
  return kAnswered;
}

void add_logs(Registry r) {
  auto* c = r.app.add_subcommand("logs", "the log of one rank of a trial's last attempt");
  auto o = std::make_shared<LogOptions>();
  c->add_option("ID", o->trial, "trial id, or the beginning of one")->required();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--rank", o->rank, "which rank")->capture_default_str();
  c->add_option("--attempt", o->attempt, "which attempt; absent: the last one");
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return logs(r.io, *o); }; });
}

void add_ingest(Registry r) {
  auto* c = r.app.add_subcommand("ingest", "the same as `sweep resume --store-only`");
  auto where = std::make_shared<SweepSelector>();
  add_sweep(*c, *where);
  add_db(*c, *where);
  add_json(*c);
  c->callback([r, where] { r.chosen = [r, where] { return store_left_results(r.io, *where); }; });
}

}  // namespace sweep::cli
