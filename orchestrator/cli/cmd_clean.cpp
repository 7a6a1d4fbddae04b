// sweep clean: shows what ended runs of this database have left, and ends it when asked.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/leftovers.h"
#include "orchestrator/driver/rehearsal.h"

namespace sweep::cli {
namespace {

void show(Io& io, const driver::LeftoversOfRuns& found, bool more, const std::string& db) {
  for (const auto& sweep : found.running()) {
    io.err << fmt::format("sweep {}: {}: left alone\n", sweep.name, driver::standing_text(sweep.holder));
    if (!driver::is_heard(sweep.holder))
      io.err << fmt::format("if you know that it is gone, type `{}`\n",
                            driver::take_over_text(sweep.name, db));
  }
  for (const auto& line : found.lines()) io.out << line << '\n';
  for (const auto& host : found.unanswered())
    io.err << fmt::format(
        "{}: what is left there is not known; agents there end by themselves once they were without "
        "contact for silence_seconds\n",
        host);
  if (!found.any() && !more && found.unanswered().empty())
    io.err << (found.running().empty() ? "nothing is left\n" : "nothing else is left\n");
}

int clean(Io& io, const SweepSelector& where, bool yes) {
  if (const auto there = database_is_there(where.db); !there) return refuse(io, there.error());
  auto store = store::Store::open(where.db, yes ? store::Mode::kReadWrite : store::Mode::kReadOnly);
  if (!store && yes) store = store::Store::open(where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  auto found = driver::LeftoversOfRuns::find(**store, where.db);
  if (!found) return refuse(io, found.error());
  const auto folders = driver::folders_of_killed_rehearsals();
  const bool any = found->any() || !folders.empty();
  const bool all_known =
      found->unanswered().empty() &&
      std::ranges::all_of(found->running(), driver::is_heard, &driver::RunningSweep::holder);
  const int answer = all_known ? kAnswered : kUnanswered;
  show(io, *found, !folders.empty(), where.db);
  for (const auto& folder : folders)
    io.out << fmt::format("folder {}  of a rehearsal that was killed\n", folder.string());
  if (!yes) {
    if (any) io.err << "--yes ends these; `sweep resume` takes Slurm jobs and agents on hosts over instead\n";
    return answer;
  }
  auto failed = found->end(**store);
  for (const auto& folder : folders)
    if (std::error_code ec; std::filesystem::remove_all(folder, ec) == static_cast<std::uintmax_t>(-1))
      failed.push_back(fmt::format("{} could not be removed: {}", folder.string(), ec.message()));
  for (const auto& why : failed) io.err << why << '\n';
  if (any || !failed.empty())
    io.err << (failed.empty() ? "ended; `sweep resume` runs what has no final result\n"
                              : "some did not end; run the command again\n");
  return failed.empty() ? answer : kUnanswered;
}

}  // namespace

void add_clean(Registry r) {
  auto* c = r.app.add_subcommand(
      "clean", "show, and with --yes end, what earlier runs left: jobs, processes, folders on hosts");
  auto where = std::make_shared<SweepSelector>();
  auto yes = std::make_shared<bool>(false);
  add_db(*c, *where);
  c->add_flag("--yes", *yes, "end and remove them; absent: only show them");
  c->callback([r, where, yes] { r.chosen = [r, where, yes] { return clean(r.io, *where, *yes); }; });
}

}  // namespace sweep::cli
