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
// Limit for one query: each job takes up to two commands of its own.
constexpr std::size_t kMostByNumber = 5;
// qsub(1), EXIT STATUS: the user or the cluster has as many jobs as allowed.
constexpr int kTooManyJobs = 25;

double unix_s_now() {
  return static_cast<double>(unix_ns_now()) / 1e9;
}

}  // namespace

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

Expected<void> GridEngineScheduler::prepare(const AllocationRequest& request) {
  SWEEP_TRY(check_programs(programs_));
  SWEEP_GET(const auto script, gridengine_script(request, options_, programs_));
  return files::write_atomically(request.spool / "job.sh", script);
}

awaitable<SubmitAnswer> GridEngineScheduler::submit(AllocationRequest request) {
  const std::vector<std::string> words{"qsub", "-terse", (request.spool / "job.sh").string()};
  const CommandResult said = co_await commands_->run(words, kSubmitLimit);
  co_return read_gridengine_submission(said);
}

awaitable<bool> GridEngineScheduler::cancel(JobKey job) {
  const std::vector<std::string> words{"qdel", std::to_string(job.number.value_or(0))};
  const CommandResult said = co_await commands_->run(words, kCommandLimit);
  co_return said.ok() || is_unknown_job(said.out + said.err);
}

std::optional<double> GridEngineScheduler::usable_s(const AllocationRequest& request,
                                                    std::optional<double> left) const {
  return left.value_or(request.seconds) - *options_.signal_seconds;
}

// The jobs whose turn it is to be queried by number.
std::vector<JobKey> GridEngineScheduler::next_to_confirm(std::vector<JobKey> jobs) {
  if (jobs.size() <= kMostByNumber) return jobs;
  std::rotate(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(turn_++ % jobs.size()), jobs.end());
  jobs.resize(kMostByNumber);
  return jobs;
}

awaitable<Expected<QueryAnswer>> GridEngineScheduler::query(std::vector<JobKey> jobs, Counted counted) {
  const CommandResult said =
      co_await commands_->run_counted(qstat_of_user(login_name()), kCommandLimit, counted);
  const auto listed = said.ok() ? read_qstat(said.out) : fail(gridengine_reason(said.err));
  if (!listed) co_return tl::unexpected(listed.error());
  QueryAnswer answer;
  std::vector<JobKey> to_confirm;
  const double now = unix_s_now();
  for (const auto& job : jobs) {
    const auto found = std::ranges::find_if(*listed, [&job](const GridEngineJob& each) {
      return each.name == job.name && (!job.number || each.number == *job.number);
    });
    const bool there = found != listed->end();
    if (there) answer.jobs[job.name].push_back(status_of(*found, now));
    if (!there && !job.number) answer.denied.push_back(job.name);
    if (job.number && (!there || phase_of(found->state) == Phase::kEnded)) to_confirm.push_back(job);
  }
  to_confirm = next_to_confirm(std::move(to_confirm));
  for (const JobKey& job : to_confirm) {
    std::vector<std::string> words{"qacct", "-j", std::to_string(*job.number)};
    const CommandResult accounted = co_await commands_->run_counted(words, kCommandLimit, counted);
    const auto end = accounted.ok() ? read_qacct(accounted.out, job.name) : std::nullopt;
    if (end) answer.jobs[job.name] = {*end};
    if (answer.jobs.contains(job.name)) continue;
    words[0] = "qstat";  // neither its list nor the accounting has the job
    const CommandResult denied = co_await commands_->run_counted(words, kCommandLimit, counted);
    if (is_unknown_job(denied.out + denied.err)) answer.denied.push_back(job.name);
  }
  co_return answer;
}

}  // namespace sweep::launch
