#include "orchestrator/launch/gridengine/gridengine_scheduler.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/time.h"
#include "orchestrator/launch/gridengine/gridengine_script.h"
#include "orchestrator/launch/gridengine/gridengine_state.h"

namespace sweep::launch {
namespace {

constexpr double kSubmitLimit = 90, kCommandLimit = 60;  // seconds of one command
// Of one query: each takes up to two commands of its own.
constexpr std::size_t kMostByNumber = 5;
// qsub(1), EXIT STATUS: the user or the cluster has as many jobs as allowed.
constexpr int kTooManyJobs = 25;

double unix_s_now() {
  return static_cast<double>(unix_ns_now()) / 1e9;
}

}  // namespace

// One query under way.
struct GridEngineScheduler::Query {
  std::vector<JobKey> to_confirm;
  Counted counted;
  Queried done;
  QueryAnswer answer;
};

std::string login_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::geteuid());
}

SubmitAnswer read_gridengine_submission(const CommandResult& said) {
  using Kind = SubmitAnswer::Kind;
  const auto job = said.ok() ? read_qsub(said.out) : std::nullopt;
  if (job) return {Kind::kAccepted, job, {}};
  const auto why = gridengine_reason(said.err);
  if (said.code == kTooManyJobs) return {Kind::kNoRoom, std::nullopt, why};
  if (said.ok() || said.timed_out || said.signal != 0 || is_master_away(said.err))
    return {Kind::kUnanswered, std::nullopt,
            fmt::format("qsub did not say whether the job was taken ({}); it is looked for by its name",
                        said.timed_out ? "no answer in time" : why)};
  return {Kind::kRefused, std::nullopt, "refused by qsub: " + why};
}

GridEngineScheduler::GridEngineScheduler(std::unique_ptr<Commands> commands, GridEngineSettings options,
                                         Programs programs)
    : commands_(std::move(commands)), options_(std::move(options)), programs_(std::move(programs)) {}

std::string GridEngineScheduler::job_name(const AllocationId& id) const {
  return gridengine_job_name(id);
}

Expected<void> GridEngineScheduler::prepare(const AllocationRequest& request) {
  SWEEP_TRY(check_programs(programs_));
  const auto script = gridengine_script(request, options_, programs_);
  if (!script) return tl::unexpected(script.error());
  return files::write_atomically(request.spool / "job.sh", *script);
}

void GridEngineScheduler::submit(const AllocationRequest& request, Submitted submitted) {
  commands_->run({"qsub", "-terse", (request.spool / "job.sh").string()}, kSubmitLimit,
                 [submitted = std::move(submitted)](const CommandResult& said) {
                   submitted(read_gridengine_submission(said));
                 });
}

void GridEngineScheduler::cancel(const JobKey& job, std::function<void(bool)> done) {
  commands_->run({"qdel", std::to_string(job.number.value_or(0))}, kCommandLimit,
                 [done = std::move(done)](const CommandResult& said) {
                   done(said.ok() || is_unknown_job(said.out + said.err));
                 });
}

std::optional<double> GridEngineScheduler::usable_s(const AllocationRequest& request,
                                                    std::optional<double> left) const {
  return left.value_or(request.seconds) - *options_.signal_seconds;
}

void GridEngineScheduler::ask(const Shared& query, std::vector<std::string> words, Commands::Answer answer) {
  query->counted();
  commands_->run(std::move(words), kCommandLimit, std::move(answer));
}

void GridEngineScheduler::query(const std::vector<JobKey>& jobs, const Counted& counted, Queried done) {
  const auto query = std::make_shared<Query>(Query{{}, counted, std::move(done), {}});
  ask(query, qstat_of_user(login_name()), [this, query, jobs](const CommandResult& said) {
    const auto listed = said.ok() ? read_qstat(said.out) : fail(gridengine_reason(said.err));
    if (!listed) return query->done(tl::unexpected(listed.error()));
    const double now = unix_s_now();
    for (const auto& job : jobs) {
      const auto found = std::ranges::find_if(*listed, [&job](const GridEngineJob& each) {
        return each.name == job.name && (!job.number || each.number == *job.number);
      });
      const bool there = found != listed->end();
      if (there) query->answer.jobs[job.name].push_back(status_of(*found, now));
      if (!there && !job.number) query->answer.denied.push_back(job.name);
      if (job.number && (!there || phase_of(found->state) == Phase::kEnded)) query->to_confirm.push_back(job);
    }
    if (auto& rest = query->to_confirm; rest.size() > kMostByNumber) {  // the others' turn comes
      std::rotate(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(turn_++ % rest.size()),
                  rest.end());
      rest.resize(kMostByNumber);
    }
    confirm_next(query);
  });
}

void GridEngineScheduler::confirm_next(const Shared& query) {
  if (query->to_confirm.empty()) return query->done(std::move(query->answer));
  const JobKey job = query->to_confirm.back();
  query->to_confirm.pop_back();
  ask(query, {"qacct", "-j", std::to_string(*job.number)}, [this, query, job](const CommandResult& said) {
    const auto end = said.ok() ? read_qacct(said.out, job.name) : std::nullopt;
    if (end) query->answer.jobs[job.name] = {*end};
    if (end || query->answer.jobs.contains(job.name)) return confirm_next(query);
    confirm(query, job);
  });
}

// Neither qstat nor the accounting has it.
void GridEngineScheduler::confirm(const Shared& query, const JobKey& job) {
  ask(query, {"qstat", "-j", std::to_string(*job.number)}, [this, query, job](const CommandResult& said) {
    if (is_unknown_job(said.out + said.err)) query->answer.denied.push_back(job.name);
    confirm_next(query);
  });
}

}  // namespace sweep::launch
