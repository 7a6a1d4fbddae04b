// sweep clean: what an earlier run of this database left: jobs by name, processes of this machine and of hosts reached by
// ssh by mark, folders there. It shows before it acts.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "base/expected.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/holder.h"
#include "orchestrator/cli/launchers.h"
#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/leftovers.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "orchestrator/launch/ssh/ssh_leftovers.h"
#include "runtime/attempt_token.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/sweep_options.h"

namespace sweep::cli {
namespace {

constexpr double kAnswerLimit = 60;  // seconds

// On hosts that one sweep has reached.
struct Far {
  launch::SshOptions options;
  std::vector<launch::RemoteLeftovers> left;
};
struct Leftovers {
  std::vector<launch::JobFacts> jobs;
  std::vector<store::AllocationRow> allocations;  // with processes on this machine
  std::vector<store::AllocationRow> slurm;        // jobs of ours that a run would take over
  std::vector<Far> far;
  std::vector<std::string> unanswered;  // hosts of which nothing is known, and why
  bool any() const { return !jobs.empty() || !allocations.empty() || !far.empty(); }
};

// Hosts are asked with the settings that the sweep has kept, and the site profiles.
Expected<void> look_far(const store::SweepRow& sweep, const std::vector<store::AllocationRow>& rows,
                        Leftovers& out) {
  std::vector<launch::RemoteNode> nodes;
  for (const auto& row : rows)
    if (row.launcher == "ssh")
      for (auto& node : launch::far_nodes(row.spool, row.id)) nodes.push_back(std::move(node));
  if (nodes.empty()) return {};
  const auto kept = sweep_options_from(sweep.options_json);
  if (!kept) return tl::unexpected(kept.error());
  LaunchRequest request;
  request.on = "ssh";
  const auto choice = choose_launcher(kept->launch.empty() ? "{}" : kept->launch, request);
  if (!choice) return tl::unexpected(choice.error());
  const auto settings = parse_json(choice->settings);
  const auto options = settings ? launch::ssh_options_from(*settings) : tl::unexpected(settings.error());
  if (!options) return tl::unexpected(options.error());
  auto found = launch::find_far(*options, nodes);
  if (!found.left.empty()) out.far.push_back({*options, std::move(found.left)});
  out.unanswered.insert(out.unanswered.end(), found.unanswered.begin(), found.unanswered.end());
  return {};
}

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

// Not a step of an allocation that somebody else made: squeue says nothing of those by our names.
bool is_own_job(const store::AllocationRow& row) {
  if (row.launcher != "slurm") return false;
  const auto record = launch::read_record(row.spool, "slurm");
  return record && *record && integer_of(**record, "standing") == 0;
}

Expected<Leftovers> find(store::Store& store, const std::string& db, Io& io) {
  Leftovers out;
  const auto sweeps = store.sweeps();
  if (!sweeps) return tl::unexpected(sweeps.error());
  for (const auto& sweep : *sweeps) {
    const auto holder = holder_of(store, sweep.id, true);
    if (!holder) return tl::unexpected(holder.error());
    if (*holder) {
      io.err << fmt::format("sweep {}: {}: left alone\n", sweep.name, standing_text(**holder));
      if (!is_heard(**holder))
        io.err << fmt::format("if you know that it is gone, type `{}`\n", take_over_text(sweep.name, db));
      continue;
    }
    const auto rows = store.allocations(sweep.id);
    if (!rows) return tl::unexpected(rows.error());
    auto jobs = living_jobs(*rows);
    if (!jobs) return tl::unexpected(jobs.error());
    out.jobs.insert(out.jobs.end(), jobs->begin(), jobs->end());
    for (const auto& row : *rows)
      if (!marked_processes(allocation_key(row.id, row.spool)).empty()) out.allocations.push_back(row);
    SWEEP_TRY(look_far(sweep, *rows, out));
    const auto open = store.open_allocations(sweep.id);
    if (!open) return tl::unexpected(open.error());
    for (const auto& row : *open)
      if (is_own_job(row)) out.slurm.push_back(row);
  }
  return out;
}

void show(Io& io, const Leftovers& found) {
  for (const auto& job : found.jobs)
    io.out << fmt::format("Slurm job {}  {}  {}  {}\n", job.id, job.name, job.state, job.nodes);
  for (const auto& row : found.allocations)
    for (const auto& process : marked_processes(allocation_key(row.id, row.spool)))
      io.out << fmt::format("process {}  {}  of allocation {}\n", process.pid, process.command, row.id);
  for (const auto& far : found.far)
    for (const auto& left : far.left) {
      for (const auto& process : left.processes)
        io.out << fmt::format("{}: process {}  of allocation {}\n", left.of.host, process,
                              left.of.allocation);
      io.out << fmt::format("{}: folder {}  of allocation {}\n", left.of.host, left.of.folder,
                            left.of.allocation);
    }
  for (const auto& host : found.unanswered)
    io.err << fmt::format(
        "{}: what is left there is not known; agents there end by themselves once they were without "
        "contact for silence_seconds\n",
        host);
  if (!found.any() && found.unanswered.empty()) io.err << "nothing is left\n";
}

// A job that is cancelled ends within seconds; until Slurm says so its allocation may live on.
Expected<void> forget_jobs(const Leftovers& found) {
  for (int looks = 0; looks < kAnswerLimit; ++looks) {
    const auto living = living_jobs(found.slurm);
    if (!living) return tl::unexpected(living.error());
    if (living->empty()) {
      for (const auto& row : found.slurm) launch::drop_record(row.spool);
      return {};
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return fail("some of these jobs have not ended yet");
}

// What did not end, and why; empty: all did.
std::vector<std::string> end_all(const Leftovers& found) {
  std::vector<std::string> failed;
  for (const auto& job : found.jobs)
    if (const auto said = launch::run_alone({"scancel", std::to_string(job.id)}, kAnswerLimit); !said.ok())
      failed.push_back(fmt::format("scancel {}: {}", job.id, launch::last_line(said.err)));
  for (const auto& row : found.allocations) launch::kill_orphans(row.spool, row.id);
  for (const auto& far : found.far)
    for (auto& why : launch::end_far(far.options, far.left)) failed.push_back(std::move(why));
  if (failed.empty() && found.unanswered.empty())  // then every part of theirs is over
    for (const auto& far : found.far)
      for (const auto& left : far.left) launch::drop_record(left.of.spool);
  if (auto gone = forget_jobs(found); !gone) failed.push_back(gone.error().message);
  return failed;
}

int clean(Io& io, const SweepSelector& where, bool yes) {
  std::error_code ec;
  if (!std::filesystem::exists(where.db, ec)) return refuse(io, {where.db + ": no such database"});
  auto store = store::Store::open(where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  const auto found = find(**store, where.db, io);
  if (!found) return refuse(io, found.error());
  show(io, *found);
  const int answer = found->unanswered.empty() ? kAnswered : kUnanswered;
  if (!found->any()) {
    if (yes)
      if (auto gone = forget_jobs(*found); !gone) return refuse(io, gone.error());
    return answer;
  }
  if (!yes) {
    io.err << "--yes ends these; `sweep resume` takes Slurm jobs and agents on hosts over instead\n";
    return answer;
  }
  const auto failed = end_all(*found);
  for (const auto& why : failed) io.err << why << '\n';
  io.err << (failed.empty() ? "ended; `sweep resume` runs what has no final result\n"
                            : "some did not end; ask again\n");
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
