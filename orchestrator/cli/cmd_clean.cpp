// sweep clean: what an earlier run of this database left: jobs by name, processes of this machine by mark. It shows
// before it acts.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/leftovers.h"
#include "orchestrator/launch/slurm_script.h"
#include "orchestrator/launch/slurm_state.h"
#include "schema/attempt_token.h"

namespace sweep::cli {
namespace {

constexpr double kAnswerLimit = 60;  // seconds

struct Leftovers {
  std::vector<launch::JobFacts> jobs;
  std::vector<store::AllocationRow> allocations;  // with processes on this machine
  bool any() const { return !jobs.empty() || !allocations.empty(); }
};

// Jobs in the queue or running that carry the name of one of these allocations.
Expected<std::vector<launch::JobFacts>> living_jobs(const std::vector<store::AllocationRow>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (row.launcher == "slurm") names.push_back(launch::slurm_job_name(row.id));
  if (names.empty()) return std::vector<launch::JobFacts>();
  const auto said = launch::run_alone(launch::squeue_by_name(names), kAnswerLimit);
  if (!said.ok()) return fail("squeue does not answer, so nothing is known of Slurm jobs: " + said.err);
  auto jobs = launch::read_squeue(said.out);
  std::erase_if(jobs, [](const launch::JobFacts& job) {
    return launch::meaning_of(job.state).phase == launch::Phase::kEnded;
  });
  return jobs;
}

Expected<Leftovers> find(store::Store& store, Io& io) {
  Leftovers out;
  const auto sweeps = store.sweeps();
  if (!sweeps) return tl::unexpected(sweeps.error());
  for (const auto& sweep : *sweeps) {
    const auto holder = store.lease(sweep.id);
    if (!holder) return tl::unexpected(holder.error());
    if (*holder) {
      io.err << fmt::format("sweep {} is being run by process {} on {}: left alone\n", sweep.name,
                            (*holder)->pid, (*holder)->host);
      continue;
    }
    const auto rows = store.allocations(sweep.id);
    if (!rows) return tl::unexpected(rows.error());
    auto jobs = living_jobs(*rows);
    if (!jobs) return tl::unexpected(jobs.error());
    out.jobs.insert(out.jobs.end(), jobs->begin(), jobs->end());
    for (const auto& row : *rows)
      if (!marked_processes(allocation_key(row.id, row.spool)).empty()) out.allocations.push_back(row);
  }
  return out;
}

int clean(Io& io, const Where& where, bool yes) {
  std::error_code ec;
  if (!std::filesystem::exists(where.db, ec)) return refuse(io, {where.db + ": no such database"});
  auto store = store::Store::open(where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  const auto found = find(**store, io);
  if (!found) return refuse(io, found.error());
  for (const auto& job : found->jobs)
    io.out << fmt::format("Slurm job {}  {}  {}  {}\n", job.id, job.name, job.state, job.nodes);
  for (const auto& row : found->allocations)
    for (const auto& process : marked_processes(allocation_key(row.id, row.spool)))
      io.out << fmt::format("process {}  {}  of allocation {}\n", process.pid, process.command, row.id);
  if (!found->any()) io.err << "nothing is left\n";
  if (!found->any() || !yes) {
    if (found->any()) io.err << "--yes ends these; `sweep resume` takes Slurm jobs over instead\n";
    return kAnswered;
  }
  bool ended = true;
  for (const auto& job : found->jobs)
    ended = launch::run_alone({"scancel", std::to_string(job.id)}, kAnswerLimit).ok() && ended;
  for (const auto& row : found->allocations) launch::clean_leftovers(row.spool, row.id);
  io.err << (ended ? "ended\n" : "scancel failed for some; ask again\n");
  return ended ? kAnswered : kUnanswered;
}

}  // namespace

void add_clean(Registry r) {
  auto* c =
      r.app.add_subcommand("clean", "show, and with --yes end, what earlier runs left: jobs and processes");
  auto where = std::make_shared<Where>();
  auto yes = std::make_shared<bool>(false);
  add_db(*c, *where);
  c->add_flag("--yes", *yes, "end them; absent: they are only shown");
  c->callback([r, where, yes] { r.chosen = [r, where, yes] { return clean(r.io, *where, *yes); }; });
}

}  // namespace sweep::cli
