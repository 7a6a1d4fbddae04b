// sweep clean: shows what ended runs of this database have left, and ends it when asked.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/leftovers.h"
#include "orchestrator/driver/rehearsal.h"

namespace sweep::cli {
namespace {

struct Left {
  driver::LeftoversOfRuns of_runs;
  std::vector<std::filesystem::path> folders;  // folders of rehearsals that were killed
  std::vector<std::string> lines;              // one for each thing, as it was before anything was ended
};

Expected<Left> find(store::Store& store, const std::string& db) {
  SWEEP_GET(auto of_runs, driver::LeftoversOfRuns::find(store, db));
  Left out{std::move(of_runs), driver::folders_of_killed_rehearsals(), {}};
  out.lines = out.of_runs.lines();
  for (const auto& folder : out.folders)
    out.lines.push_back(fmt::format("folder {}  of a rehearsal that was killed", folder.string()));
  return out;
}

void show(Io& io, const Left& left, const std::string& db) {
  const auto& found = left.of_runs;
  for (const auto& sweep : found.running()) {
    io.err << fmt::format("sweep {}: {}: left alone\n", sweep.name, driver::holder_text(sweep.holder));
    if (!driver::is_responsive(sweep.holder))
      io.err << fmt::format("if you know that it is gone, type `{}`\n",
                            driver::take_over_text(sweep.name, db));
  }
  if (!io.json)
    for (const auto& line : left.lines) io.out << line << '\n';
  for (const auto& host : found.unanswered())
    io.err << fmt::format(
        "{}: what is left there is not known; agents there end by themselves once they were without "
        "contact for silence_seconds\n",
        host);
  if (left.lines.empty() && found.unanswered().empty())
    io.err << (found.running().empty() ? "nothing is left\n" : "nothing else is left\n");
}

nlohmann::json document(const Left& left, bool yes, const std::vector<std::string>& failed) {
  nlohmann::json running = nlohmann::json::array();
  for (const auto& sweep : left.of_runs.running())
    running.push_back({{"sweep", sweep.name},
                       {"holder", driver::holder_name(sweep.holder)},
                       {"heard", driver::is_responsive(sweep.holder)}});
  return {{"left", left.lines},
          {"running", std::move(running)},
          {"unanswered", left.of_runs.unanswered()},
          {"ended", yes},
          {"failed", failed}};
}

// Ends all of it. A sentence for each thing that did not end.
std::vector<std::string> end(Left& left, store::Store& store) {
  auto failed = left.of_runs.end(store);
  for (const auto& folder : left.folders)
    if (std::error_code ec; std::filesystem::remove_all(folder, ec) == static_cast<std::uintmax_t>(-1))
      failed.push_back(fmt::format("{} could not be removed: {}", folder.string(), ec.message()));
  return failed;
}

int clean(Io& io, const SweepSelector& where, bool yes) {
  if (const auto there = database_is_there(where.db); !there) return refuse(io, there.error());
  auto store = store::Store::open(where.db, yes ? store::Mode::kReadWrite : store::Mode::kReadOnly);
  if (!store && yes) store = store::Store::open(where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  auto left = find(**store, where.db);
  if (!left) return refuse(io, left.error());
  const bool any = !left->lines.empty();
  const auto& found = left->of_runs;
  const bool all_known =
      found.unanswered().empty() &&
      std::ranges::all_of(found.running(), driver::is_responsive, &driver::RunningSweep::holder);
  show(io, *left, where.db);
  std::vector<std::string> failed;
  if (yes) failed = end(*left, **store);
  for (const auto& why : failed) io.err << why << '\n';
  if (!yes && any)
    io.err << "--yes ends these; `sweep resume` takes Slurm jobs and agents on hosts over instead\n";
  if (yes && (any || !failed.empty()))
    io.err << (failed.empty() ? "ended; `sweep resume` runs what has no final result\n"
                              : "some did not end; run the command again\n");
  if (io.json) print_document(io, document(*left, yes, failed));
  return failed.empty() && all_known ? kAnswered : kUnanswered;
}

}  // namespace

void add_clean(Registry r) {
  auto* c = r.app.add_subcommand(
      "clean", "show, and with --yes end, what earlier runs left: jobs, processes, folders on hosts");
  auto where = std::make_shared<SweepSelector>();
  auto yes = std::make_shared<bool>(false);
  add_db(*c, *where);
  c->add_flag("--yes", *yes, "end and remove them; absent: only show them");
  add_json(*c);
  c->callback([r, where, yes] { r.chosen = [r, where, yes] { return clean(r.io, *where, *yes); }; });
}

}  // namespace sweep::cli
