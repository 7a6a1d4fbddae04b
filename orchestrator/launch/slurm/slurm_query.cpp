#include "orchestrator/launch/slurm/slurm_query.h"

#include <fmt/format.h>

#include <algorithm>

namespace sweep::launch {
namespace {

// Limit for one query: each question is a command of its own.
constexpr std::size_t kMostQuestionsByNumber = 5;

JobStatus::Wait wait_of(const std::string& reason) {
  if (is_hopeless(reason)) return JobStatus::Wait::kHopeless;
  return reason.empty() || reason == "Priority" || reason == "Resources" ? JobStatus::Wait::kUsual
                                                                         : JobStatus::Wait::kNoteworthy;
}

void note(const std::vector<JobFacts>& facts, QueryAnswer& answer) {
  for (const auto& each : facts) answer.jobs[each.name].push_back(status_of(each));
}

std::vector<std::string> names_of(const std::vector<JobKey>& jobs) {
  std::vector<std::string> out;
  for (const auto& job : jobs) out.push_back(job.name);
  return out;
}

// A job of the same name and another number is another user's or an older one.
std::vector<JobKey> unlisted(const std::vector<JobKey>& jobs, const QueryAnswer& answer) {
  std::vector<JobKey> out;
  for (const auto& job : jobs) {
    const auto found = answer.jobs.find(job.name);
    const bool listed =
        found != answer.jobs.end() && std::ranges::any_of(found->second, [&job](const JobStatus& status) {
          return !job.number || status.number == *job.number;
        });
    if (!listed) out.push_back(job);
  }
  return out;
}

// The jobs that are queried by number; a job without one is denied.
std::vector<JobKey> to_confirm(const std::vector<JobKey>& missing, QueryAnswer& answer, std::size_t& turn) {
  std::vector<JobKey> out;
  for (const auto& job : missing)
    if (job.number)
      out.push_back(job);
    else
      answer.denied.push_back(job.name);
  if (out.size() > kMostQuestionsByNumber) {  // the others' turn comes; nothing is concluded of them yet
    std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(turn++ % out.size()), out.end());
    out.resize(kMostQuestionsByNumber);
  }
  return out;
}

std::string why_failed(const CommandResult& said) {
  return said.timed_out ? "no answer in time" : said.err.substr(0, said.err.find('\n'));
}

tl::unexpected<Error> no_answer(const CommandResult& said) {
  return fail(why_failed(said));
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

awaitable<Expected<QueryAnswer>> query_jobs(Commands& commands, SlurmQueryMemory& memory,
                                            std::vector<JobKey> jobs, Scheduler::Counted counted) {
  QueryAnswer answer;
  const CommandResult listed =
      co_await commands.run_counted(squeue_by_name(names_of(jobs)), kSlurmAnswerLimit, counted);
  if (!listed.ok()) co_return no_answer(listed);
  note(read_squeue(listed.out), answer);
  const auto missing = unlisted(jobs, answer);
  if (!missing.empty() && !memory.no_accounting) {
    const CommandResult old =
        co_await commands.run_counted(sacct_by_name(names_of(missing)), kSlurmAnswerLimit, counted);
    memory.no_accounting = old.err.find("accounting storage is disabled") != std::string::npos;
    if (!old.ok() && !memory.no_accounting) co_return no_answer(old);
    note(read_sacct(old.out), answer);
  }
  const auto numbered = to_confirm(unlisted(missing, answer), answer, memory.turn);
  for (const JobKey& job : numbered) {
    std::vector<std::string> words{"scontrol", "show", "job", "--oneliner", std::to_string(*job.number)};
    const CommandResult said = co_await commands.run_counted(std::move(words), kSlurmAnswerLimit, counted);
    const auto facts = said.ok() ? read_scontrol(said.out) : std::nullopt;
    const bool gone = facts ? facts->name != job.name  // Slurm gave its number to another job
                            : said.err.find("Invalid job id") != std::string::npos;
    if (gone)
      answer.denied.push_back(job.name);
    else if (facts)
      note({*facts}, answer);
  }
  co_return answer;
}

// The job is known; of its steps those we started are our children, and an adopted one is looked for.
awaitable<Expected<QueryAnswer>> query_steps(Commands& commands, i64 existing_job, std::vector<JobKey> jobs,
                                             Scheduler::Counted counted) {
  const CommandResult listed =
      co_await commands.run_counted(squeue_of_job(existing_job), kSlurmAnswerLimit, counted);
  if (!listed.ok()) co_return no_answer(listed);
  const CommandResult said =
      co_await commands.run_counted(squeue_of_steps(existing_job), kSlurmAnswerLimit, counted);
  if (!said.ok()) co_return no_answer(said);
  const auto facts = read_squeue(listed.out);
  const auto steps = read_steps(said.out);
  const bool runs = !facts.empty() && meaning_of(facts.front().state).phase != Phase::kEnded;
  QueryAnswer answer;
  for (const auto& job : jobs) {
    const bool there =
        std::ranges::any_of(steps, [&job](const StepFacts& step) { return step.name == job.name; });
    if (runs && !there && job.adopted) answer.denied.push_back(job.name);
    if (facts.empty() || (runs && !there)) continue;
    JobFacts own = facts.front();
    own.name = job.name;
    note({own}, answer);
  }
  co_return answer;
}

Expected<bool> slurm_job_is_over(i64 job) {
  const CommandResult said = run_alone(squeue_of_job(job), kSlurmAnswerLimit);
  if (!said.ok() && said.err.find("Invalid job id") != std::string::npos) return true;
  if (!said.ok())
    return fail(fmt::format("squeue does not say whether job {} is over: {}", job, why_failed(said)));
  const auto facts = read_squeue(said.out);
  if (facts.empty()) return last_line(said.out).empty();
  return meaning_of(facts.front().state).phase == Phase::kEnded;
}

}  // namespace sweep::launch
