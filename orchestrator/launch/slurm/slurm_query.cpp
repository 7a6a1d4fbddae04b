#include "orchestrator/launch/slurm/slurm_query.h"

#include <algorithm>

namespace sweep::launch {
namespace {

// Of one query: each is a command of its own.
constexpr std::size_t kMostQuestionsByNumber = 5;

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

SlurmQuery::SlurmQuery(Commands& commands, SlurmQueryMemory& memory, std::vector<JobKey> jobs,
                       Scheduler::Counted counted, Scheduler::Queried done)
    : commands_(commands),
      memory_(memory),
      jobs_(std::move(jobs)),
      counted_(std::move(counted)),
      done_(std::move(done)) {}

void SlurmQuery::ask(std::vector<std::string> words, Commands::Answer answer) {
  counted_();
  commands_.run(std::move(words), kSlurmAnswerLimit, std::move(answer));
}

void SlurmQuery::ask_about_jobs() {
  std::vector<std::string> names;
  for (const auto& job : jobs_) names.push_back(job.name);
  ask(squeue_by_name(names), [self = shared_from_this(), this](const CommandResult& said) {
    if (!said.ok()) return failed(said);
    note(read_squeue(said.out));
    std::vector<std::string> missing;
    for (const auto& job : unlisted()) missing.push_back(job.name);
    if (missing.empty() || memory_.no_accounting) return confirm_missing();
    ask(sacct_by_name(missing), [self = shared_from_this(), this](const CommandResult& old) {
      memory_.no_accounting = old.err.find("accounting storage is disabled") != std::string::npos;
      if (!old.ok() && !memory_.no_accounting) return failed(old);
      note(read_sacct(old.out));
      confirm_missing();
    });
  });
}

// The job is known; of its steps those we started are our children, and an adopted one is looked for.
void SlurmQuery::ask_about_steps(i64 existing_job) {
  ask(squeue_of_job(existing_job),
      [self = shared_from_this(), this, existing_job](const CommandResult& said) {
        if (!said.ok()) return failed(said);
        ask(squeue_of_steps(existing_job),
            [self = shared_from_this(), this, facts = read_squeue(said.out)](const CommandResult& steps) {
              if (!steps.ok()) return failed(steps);
              read_steps_of(facts, read_steps(steps.out));
            });
      });
}

void SlurmQuery::read_steps_of(const std::vector<JobFacts>& facts, const std::vector<StepFacts>& steps) {
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

void SlurmQuery::note(const std::vector<JobFacts>& facts) {
  for (const auto& each : facts) answer_.jobs[each.name].push_back(status_of(each));
}

// A job of the same name and another number is another user's or an older one.
std::vector<JobKey> SlurmQuery::unlisted() const {
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

void SlurmQuery::confirm_missing() {
  std::vector<JobKey> by_number;
  for (const auto& job : unlisted())
    if (job.number)
      by_number.push_back(job);
    else
      answer_.denied.push_back(job.name);
  if (by_number.size() >
      kMostQuestionsByNumber) {  // the others' turn comes; nothing is concluded of them yet
    const auto first = by_number.begin() + static_cast<std::ptrdiff_t>(memory_.turn++ % by_number.size());
    std::rotate(by_number.begin(), first, by_number.end());
    by_number.resize(kMostQuestionsByNumber);
  }
  confirm_next(std::move(by_number));
}

void SlurmQuery::confirm_next(std::vector<JobKey> rest) {
  if (rest.empty()) return answered();
  const JobKey job = rest.back();
  rest.pop_back();
  ask({"scontrol", "show", "job", "--oneliner", std::to_string(*job.number)},
      [self = shared_from_this(), this, job, rest = std::move(rest)](const CommandResult& said) {
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

void SlurmQuery::failed(const CommandResult& said) {
  done_(fail(said.timed_out ? "no answer in time" : said.err.substr(0, said.err.find('\n'))));
}

void SlurmQuery::answered() {
  done_(std::move(answer_));
}

}  // namespace sweep::launch
