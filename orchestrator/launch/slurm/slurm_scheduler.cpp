#include "orchestrator/launch/slurm/slurm_scheduler.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.h"
#include "base/time.h"
#include "orchestrator/launch/batch/batch_launcher.h"

namespace sweep::launch {
namespace {

constexpr double kSbatchLimit = 90, kScancelLimit = 60;  // seconds of one command
// A step of an existing job ends when its agent does.
constexpr double kWithoutLimit = 1e8;

SubmitAnswer read_submission(const CommandResult& said) {
  using Kind = SubmitAnswer::Kind;
  const auto job = said.ok() ? read_sbatch(said.out) : std::nullopt;
  if (job) return {Kind::kAccepted, job, {}};
  if (said.ok() || said.timed_out || said.signal != 0 || is_in_doubt(said.err))
    return {Kind::kUnanswered, std::nullopt,
            fmt::format("sbatch did not say whether it took the job ({}); it is looked for by its name",
                        said.timed_out     ? "no answer in time"
                        : said.signal != 0 ? fmt::format("ended by signal {}", said.signal)
                                           : last_line(said.err))};
  const auto why = sbatch_refusal(said.err);
  if (takes_no_more(said.err)) return {Kind::kNoRoom, std::nullopt, why};
  return {Kind::kRefused, std::nullopt, fmt::format("refused by sbatch: {}", why)};
}

SubmitAnswer step_over(i64 job, const CommandResult& said) {
  return {SubmitAnswer::Kind::kStepOver, std::nullopt,
          fmt::format("the agent's step of Slurm job {} ended: {}", job, last_line(said.err))};
}

}  // namespace

SlurmScheduler::SlurmScheduler(std::unique_ptr<Commands> commands, SlurmOptions options, Programs programs)
    : commands_(std::move(commands)),
      options_(std::move(options)),
      programs_(std::move(programs)),
      idle_(options_.idle),
      idle_asked_s_(steady_s()) {}

Expected<void> SlurmScheduler::prepare(const AllocationRequest& request) {
  const auto& container = options_.container;
  if (!container.stated) SWEEP_TRY(check_programs(programs_));
  SWEEP_GET(const auto script, slurm_script(request, options_, programs_));
  if (auto written = files::write_atomically(request.spool / "job.sh", script); !written) return written;
  if (!container.stated) return {};
  const auto wrapper = container_wrapper_path(request.spool);
  const auto text = container_wrapper(*container, programs_.rank, request.spool);
  if (auto written = files::write_atomically(wrapper, text); !written) return written;
  ::chmod(wrapper.c_str(), 0755);
  return {};
}

// The head agent as a step of the job that is there already; the step ends when srun does.
std::vector<std::string> SlurmScheduler::step_words(const AllocationRequest& request) const {
  std::vector<std::string> words{"srun",
                                 fmt::format("--jobid={}", options_.existing_job),
                                 "--overlap",
                                 "--nodes=1",
                                 "--ntasks=1",
                                 "--job-name=" + batch_job_name(request.id),
                                 "--output=" + slurm_file_name((request.spool / "slurm.log").string())};
  for (auto& word : head_agent_words(request, options_, programs_)) words.push_back(std::move(word));
  return words;
}

awaitable<SubmitAnswer> SlurmScheduler::submit(AllocationRequest request) {
  const auto job = existing_job();
  std::vector<std::string> words{"sbatch", "--parsable", (request.spool / "job.sh").string()};
  if (job) words = step_words(request);
  const double limit_s = job ? kWithoutLimit : kSbatchLimit;
  const CommandResult said = co_await commands_->run(std::move(words), limit_s);
  co_return job ? step_over(*job, said) : read_submission(said);
}

awaitable<bool> SlurmScheduler::cancel(JobKey job) {
  if (!existing_job()) {
    const std::vector<std::string> words{"scancel", std::to_string(job.number.value_or(0))};
    const CommandResult said = co_await commands_->run(words, kScancelLimit);
    co_return said.ok();
  }
  // The job belongs to the user (sbatch, salloc): only our step of it is cancelled.
  const CommandResult listed = co_await commands_->run(squeue_of_steps(options_.existing_job), kScancelLimit);
  const auto steps = read_steps(listed.out);
  for (const auto& step : steps) {
    if (step.name != job.name) continue;
    const std::vector<std::string> words{"scancel", "--signal=TERM", step.id};
    co_await commands_->run(words, kScancelLimit);
  }
  co_return listed.ok();
}

std::optional<i64> SlurmScheduler::existing_job() const {
  return options_.existing_job > 0 ? std::optional(options_.existing_job) : std::nullopt;
}

std::optional<double> SlurmScheduler::usable_s(const AllocationRequest& request,
                                               std::optional<double> left) const {
  if (!left && existing_job() && options_.existing_job_ends_s)
    left = *options_.existing_job_ends_s - steady_s();
  if (left) return *left - reserved_seconds(options_);
  if (existing_job()) return std::nullopt;
  return usable_seconds(request.seconds, options_);
}

awaitable<Expected<QueryAnswer>> SlurmScheduler::query(std::vector<JobKey> jobs, Counted counted) {
  if (const auto job = existing_job())
    return query_steps(*commands_, *job, std::move(jobs), std::move(counted));
  return query_jobs(*commands_, memory_, std::move(jobs), std::move(counted));
}

// Asked with the other questions, as often as poll_seconds allows.
awaitable<bool> SlurmScheduler::count_idle(Counted counted) {
  if (existing_job() || steady_s() - idle_asked_s_ < *options_.poll_seconds) co_return false;
  idle_asked_s_ = steady_s();
  const CommandResult said = co_await commands_->run_counted(sinfo_idle(), kSlurmAnswerLimit, counted);
  if (said.ok()) idle_ = read_idle(said.out);
  co_return said.ok();
}

i64 SlurmScheduler::idle_nodes(const std::string& hardware) const {
  if (existing_job()) return 0;
  const auto asks = sbatch_options_for(hardware, options_);
  const auto partition = asks.find("partition");
  const auto found = idle_.find(partition == asks.end() ? "" : partition->second);
  return found == idle_.end() ? 0 : found->second;
}

std::unique_ptr<Launcher> make_slurm(boost::asio::io_context& io, SlurmOptions options, Programs programs,
                                     Launcher::Sink sink, std::unique_ptr<Commands> commands) {
  if (!commands) commands = std::make_unique<Commands>(io);
  const double longest_pause_s = *options.poll_seconds;
  return make_batch(
      io, std::make_unique<SlurmScheduler>(std::move(commands), std::move(options), std::move(programs)),
      longest_pause_s, std::move(sink));
}

}  // namespace sweep::launch
