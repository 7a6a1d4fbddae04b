#include "orchestrator/launch/slurm/slurm_scheduler.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.h"
#include "base/time.h"

namespace sweep::launch {
namespace {

constexpr double kSbatchLimit = 90, kScancelLimit = 60, kAnswerLimit = 60;  // seconds of one command
// A step of an existing job ends when its agent does.
constexpr double kWithoutLimit = 1e8;
// Of one query: each is a command of its own.
constexpr std::size_t kMostQuestionsByNumber = 5;

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

JobStatus::Wait wait_of(const std::string& reason) {
  if (is_hopeless(reason)) return JobStatus::Wait::kHopeless;
  return reason.empty() || reason == "Priority" || reason == "Resources" ? JobStatus::Wait::kUsual
                                                                         : JobStatus::Wait::kNoteworthy;
}

}  // namespace

JobStatus status_of(const JobFacts& facts) {
  const Meaning meaning = meaning_of(facts.state);
  JobStatus out;
  out.number = facts.id;
  out.name = facts.name;
  out.phase = meaning.phase;
  out.blame = meaning.blame;
  out.state = facts.state;
  if (facts.reason != "None") out.reason = facts.reason;
  out.wait = wait_of(out.reason);
  out.nodes = facts.nodes;
  out.seconds_left = facts.seconds_left;
  return out;
}

SlurmScheduler::SlurmScheduler(std::unique_ptr<Commands> commands, SlurmOptions options, Programs programs)
    : commands_(std::move(commands)),
      options_(std::move(options)),
      programs_(std::move(programs)),
      idle_(options_.idle),
      idle_asked_s_(steady_s()) {}

Expected<void> SlurmScheduler::prepare(const AllocationRequest& request) {
  const auto& container = options_.container;
  if (container.runtime.empty()) SWEEP_TRY(check_programs(programs_));
  const auto script = slurm_script(request, options_, programs_);
  if (!script) return tl::unexpected(script.error());
  if (auto written = files::write_atomically(request.spool / "job.sh", *script); !written) return written;
  if (container.runtime.empty()) return {};
  const auto wrapper = container_wrapper_path(request.spool);
  const auto text = container_wrapper(container, programs_.rank, request.spool);
  if (auto written = files::write_atomically(wrapper, text); !written) return written;
  ::chmod(wrapper.c_str(), 0755);
  return {};
}

void SlurmScheduler::submit(const AllocationRequest& request, Submitted submitted) {
  if (existing_job()) return submit_step(request, std::move(submitted));
  commands_->run(
      {"sbatch", "--parsable", (request.spool / "job.sh").string()}, kSbatchLimit,
      [submitted = std::move(submitted)](const CommandResult& said) { submitted(read_submission(said)); });
}

// The head agent as a step of the job that is there already; the step ends when srun does.
void SlurmScheduler::submit_step(const AllocationRequest& request, Submitted submitted) {
  const i64 job = options_.existing_job;
  std::vector<std::string> words{"srun",
                                 fmt::format("--jobid={}", job),
                                 "--overlap",
                                 "--nodes=1",
                                 "--ntasks=1",
                                 "--job-name=" + job_name(request.id),
                                 "--output=" + slurm_file_name((request.spool / "slurm.log").string())};
  for (auto& word : head_agent_words(request, options_, programs_)) words.push_back(std::move(word));
  commands_->run(
      std::move(words), kWithoutLimit, [job, submitted = std::move(submitted)](const CommandResult& said) {
        submitted({SubmitAnswer::Kind::kStepOver, std::nullopt,
                   fmt::format("the agent's step of Slurm job {} ended: {}", job, last_line(said.err))});
      });
}

void SlurmScheduler::cancel(const JobKey& job, std::function<void(bool)> done) {
  if (existing_job()) return cancel_step(job, std::move(done));
  commands_->run({"scancel", std::to_string(job.number.value_or(0))}, kScancelLimit,
                 [done = std::move(done)](const CommandResult& said) { done(said.ok()); });
}

// The job belongs to the user (sbatch, salloc): only our step of it is cancelled.
void SlurmScheduler::cancel_step(const JobKey& job, std::function<void(bool)> done) {
  commands_->run(
      squeue_of_steps(options_.existing_job), kScancelLimit,
      [this, name = job.name, done = std::move(done)](const CommandResult& said) {
        for (const auto& step : read_steps(said.out))
          if (step.name == name)
            commands_->run({"scancel", "--signal=TERM", step.id}, kScancelLimit, [](const CommandResult&) {});
        done(said.ok());
      });
}

std::optional<i64> SlurmScheduler::existing_job() const {
  return options_.existing_job > 0 ? std::optional(options_.existing_job) : std::nullopt;
}

std::optional<double> SlurmScheduler::usable_s(const AllocationRequest& request,
                                               std::optional<double> left) const {
  if (!left && existing_job()) left = options_.existing_job_seconds_left;
  if (left) return *left - reserved_seconds(options_);
  if (existing_job()) return std::nullopt;
  return usable_seconds(request.seconds, options_);
}

void SlurmScheduler::ask(std::vector<std::string> words, Commands::Answer answer) {
  counted_();
  commands_->run(std::move(words), kAnswerLimit, std::move(answer));
}

void SlurmScheduler::query(const std::vector<JobKey>& jobs, const Counted& counted, Queried queried) {
  jobs_ = jobs;
  counted_ = counted;
  queried_ = std::move(queried);
  answer_ = {};
  if (existing_job()) return query_existing_job();
  std::vector<std::string> names;
  for (const auto& job : jobs_) names.push_back(job.name);
  ask(squeue_by_name(names), [this](const CommandResult& said) {
    if (!said.ok()) return failed(said);
    note(read_squeue(said.out));
    std::vector<std::string> missing;
    for (const auto& job : unlisted()) missing.push_back(job.name);
    if (missing.empty() || no_accounting_) return confirm_missing();
    ask(sacct_by_name(missing), [this](const CommandResult& old) {
      no_accounting_ = old.err.find("accounting storage is disabled") != std::string::npos;
      if (!old.ok() && !no_accounting_) return failed(old);
      note(read_sacct(old.out));
      confirm_missing();
    });
  });
}

// The job is known; of its steps those we started are our children, and an adopted one is looked for.
void SlurmScheduler::query_existing_job() {
  ask(squeue_of_job(options_.existing_job), [this](const CommandResult& said) {
    if (!said.ok()) return failed(said);
    ask(squeue_of_steps(options_.existing_job),
        [this, facts = read_squeue(said.out)](const CommandResult& steps) {
          if (!steps.ok()) return failed(steps);
          read_existing_job(facts, read_steps(steps.out));
        });
  });
}

void SlurmScheduler::read_existing_job(const std::vector<JobFacts>& facts,
                                       const std::vector<StepFacts>& steps) {
  const bool runs = !facts.empty() && meaning_of(facts.front().state).phase != Phase::kEnded;
  for (const auto& job : jobs_) {
    const bool there =
        std::ranges::any_of(steps, [&job](const StepFacts& step) { return step.name == job.name; });
    if (runs && !there && job.adopted) answer_.denied.push_back(job.name);
    if (facts.empty() || (runs && !there)) continue;
    JobFacts own = facts.front();
    own.name = job.name;
    note({own});
  }
  answered();
}

void SlurmScheduler::note(const std::vector<JobFacts>& facts) {
  for (const auto& each : facts) answer_.jobs[each.name].push_back(status_of(each));
}

// A job of the same name and another number is somebody else's.
std::vector<JobKey> SlurmScheduler::unlisted() const {
  std::vector<JobKey> out;
  for (const auto& job : jobs_) {
    const auto found = answer_.jobs.find(job.name);
    const bool listed =
        found != answer_.jobs.end() && std::ranges::any_of(found->second, [&job](const JobStatus& status) {
          return !job.number || status.number == *job.number;
        });
    if (!listed) out.push_back(job);
  }
  return out;
}

void SlurmScheduler::confirm_missing() {
  std::vector<JobKey> by_number;
  for (const auto& job : unlisted())
    if (job.number)
      by_number.push_back(job);
    else
      answer_.denied.push_back(job.name);
  if (by_number.size() >
      kMostQuestionsByNumber) {  // the others' turn comes; nothing is concluded of them yet
    const auto first = by_number.begin() + static_cast<std::ptrdiff_t>(turn_++ % by_number.size());
    std::rotate(by_number.begin(), first, by_number.end());
    by_number.resize(kMostQuestionsByNumber);
  }
  confirm_next(std::move(by_number));
}

void SlurmScheduler::confirm_next(std::vector<JobKey> rest) {
  if (rest.empty()) return answered();
  const JobKey job = rest.back();
  rest.pop_back();
  ask({"scontrol", "show", "job", "--oneliner", std::to_string(*job.number)},
      [this, job, rest = std::move(rest)](const CommandResult& said) {
        const auto facts = said.ok() ? read_scontrol(said.out) : std::nullopt;
        const bool gone = facts ? facts->name != job.name  // Slurm gave its number to another job
                                : said.err.find("Invalid job id") != std::string::npos;
        if (gone)
          answer_.denied.push_back(job.name);
        else if (facts)
          note({*facts});
        confirm_next(rest);
      });
}

void SlurmScheduler::failed(const CommandResult& said) {
  const auto queried = std::move(queried_);
  queried(fail(said.timed_out ? "no answer in time" : said.err.substr(0, said.err.find('\n'))));
}

void SlurmScheduler::answered() {
  const auto queried = std::move(queried_);
  queried(std::move(answer_));
}

// Asked with the other questions, as often as poll_seconds allows.
void SlurmScheduler::count_idle(const Counted& counted, std::function<void(bool)> done) {
  if (existing_job() || steady_s() - idle_asked_s_ < options_.poll_s) return done(false);
  idle_asked_s_ = steady_s();
  counted();
  commands_->run(sinfo_idle(), kAnswerLimit, [this, done = std::move(done)](const CommandResult& said) {
    if (said.ok()) idle_ = read_idle(said.out);
    done(said.ok());
  });
}

i64 SlurmScheduler::idle_nodes(const std::string& hardware) const {
  if (existing_job()) return 0;
  const auto asks = sbatch_options_for(hardware, options_);
  const auto partition = asks.find("partition");
  const auto found = idle_.find(partition == asks.end() ? "" : partition->second);
  return found == idle_.end() ? 0 : found->second;
}

}  // namespace sweep::launch
