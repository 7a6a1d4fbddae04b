#include "orchestrator/launch/slurm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <set>

#include "base/time.h"
#include "orchestrator/launch/held_allocations.h"
#include "orchestrator/launch/poll_interval.h"
#include "orchestrator/launch/slurm_job.h"

namespace sweep::launch {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr double kLook = 0.1;        // between two looks into the outboxes
constexpr double kAnswerLimit = 60;  // of one question
constexpr int kFailuresToTell = 3;
constexpr std::size_t kMostDenials = 5;  // of a round: each is a question of its own

class Slurm final : public HeldAllocations<SlurmJob> {
 public:
  Slurm(boost::asio::io_context& io, SlurmOptions options, Programs programs, Sink sink,
        std::unique_ptr<Commands> commands)
      : commands_(commands ? std::move(commands) : std::make_unique<Commands>(io)),
        sink_(std::move(sink)),
        pace_(options.poll_s),
        around_{*commands_,
                std::move(options),
                std::move(programs),
                [this](const Event& event) {
                  if (sink_) sink_(event);
                },
                [this] { pace_.hurry(steady_s()); },
                steady_s},
        timer_(io),
        idle_(around_.options.idle) {
    tick();
  }
  ~Slurm() override {
    sink_ = nullptr;
    abandon_all();
    commands_.reset();
  }

  Expected<void> request(const AllocationRequest& wanted) override {
    if (held_.contains(wanted.id)) return fail(fmt::format("allocation {} exists already", wanted.id));
    for (const auto& program : {around_.programs.agent, around_.programs.rank})
      if (::access(program.c_str(), X_OK) != 0 && around_.options.container.runtime.empty())
        return fail(
            fmt::format("{} is not there or cannot be executed; build it or name another", program.string()));
    auto job = std::make_shared<SlurmJob>(around_, fenced(wanted));
    if (auto sent = job->submit(); !sent) return sent;
    held_[wanted.id] = std::move(job);
    return {};
  }
  i64 idle_nodes(const std::string& hardware) const override {
    if (around_.options.existing_job > 0) return 0;
    const auto asks = sbatch_options_for(hardware, around_.options);
    const auto partition = asks.find("partition");
    const auto found = idle_.find(partition == asks.end() ? "" : partition->second);
    i64 idle = found == idle_.end() ? 0 : found->second;
    for (const auto& [id, job] : held_)
      if (!counted_.contains(id)) idle -= job->request().nodes;
    return std::max<i64>(0, idle);
  }
  Expected<std::optional<AllocationRequest>> adopt(const AllocationId& id, const std::filesystem::path& spool,
                                                   i64 incarnation, std::uint64_t offset) override {
    AllocationRequest known;
    known.id = id, known.spool = spool, known.incarnation = incarnation, known.outbox_offset = offset;
    auto job = std::make_shared<SlurmJob>(around_, fenced(known));
    const auto taken = job->take_up();
    if (!taken) return tl::unexpected(taken.error());
    if (!*taken) return std::optional<AllocationRequest>();
    held_[id] = job;
    return std::optional(job->request());
  }

 private:
  void tick() {
    timer_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(kLook)));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      const auto jobs = held_;  // what is said may request another
      for (const auto& [id, job] : jobs) job->look();
      std::erase_if(held_, [](const auto& each) { return each.second->closed(); });
      if (!asking_ && !held_.empty() && pace_.due(steady_s())) ask();
      tick();
    });
  }

  void question(std::vector<std::string> words, Commands::Answer answer) {
    pace_.asked(steady_s());
    commands_->run(std::move(words), kAnswerLimit, std::move(answer));
  }

  // Round one: squeue about all. Round two, about those it does not list: sacct, where there is accounting.
  // Round three: scontrol, one by one, about those whose number is known; its denial is a fact.
  void ask() {
    asking_ = true;
    if (around_.options.existing_job > 0) return query_existing_job();
    std::vector<std::string> names;
    for (const auto& [id, job] : held_) names.push_back(job->name());
    question(squeue_by_name(names), [this](const CommandResult& said) {
      if (!said.ok()) return failed(said);
      failures_ = 0;
      known_.clear();
      note(read_squeue(said.out));
      const auto missing = unlisted();
      if (missing.empty() || no_accounting_) return deny(missing);
      question(sacct_by_name(missing), [this](const CommandResult& old) {
        no_accounting_ = old.err.find("accounting storage is disabled") != std::string::npos;
        if (!old.ok() && !no_accounting_) return failed(old);
        note(read_sacct(old.out));
        deny(unlisted());
      });
    });
  }

  // The job is known; of its steps those we started are our children, and an adopted one is looked for.
  void query_existing_job() {
    question(squeue_of_job(around_.options.existing_job), [this](const CommandResult& said) {
      if (!said.ok()) return failed(said);
      question(squeue_of_steps(around_.options.existing_job),
               [this, facts = read_squeue(said.out)](const CommandResult& steps) {
                 if (!steps.ok()) return failed(steps);
                 tell_of_steps(facts, read_steps(steps.out));
               });
    });
  }

  void tell_of_steps(const std::vector<JobFacts>& facts, const std::vector<StepFacts>& steps) {
    failures_ = 0;
    known_.clear();
    denied_.clear();
    const bool runs = !facts.empty() && meaning_of(facts.front().state).phase != Phase::kEnded;
    for (const auto& [id, job] : held_) {
      const auto name = job->name();
      const bool there = std::any_of(steps.begin(), steps.end(),
                                     [&name](const StepFacts& step) { return step.name == name; });
      if (runs && !there && job->adopted()) denied_.push_back(job->name());
      if (facts.empty() || (runs && !there)) continue;
      JobFacts own = facts.front();
      own.name = job->name();
      note({own});
    }
    answered();
  }

  void note(const std::vector<JobFacts>& facts) {
    for (const auto& each : facts) known_[each.name].push_back(each);
  }
  bool tells_of(const SlurmJob& job) const {
    const auto found = known_.find(job.name());
    return found != known_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                [&](const JobFacts& facts) { return job.is_this(facts); });
  }
  std::vector<std::string> unlisted() const {
    std::vector<std::string> out;
    for (const auto& [id, job] : held_)
      if (!tells_of(*job)) out.push_back(job->name());
    return out;
  }

  void deny(const std::vector<std::string>& missing) {
    denied_.clear();
    std::vector<i64> numbers;
    for (const auto& [id, job] : held_) {
      if (std::find(missing.begin(), missing.end(), job->name()) == missing.end()) continue;
      if (job->number())
        numbers.push_back(*job->number());
      else
        denied_.push_back(job->name());
    }
    if (numbers.size() > kMostDenials) {  // the others' turn comes; until then nothing is concluded of them
      const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(turn_++ % numbers.size());
      std::rotate(numbers.begin(), first, numbers.end());
      numbers.resize(kMostDenials);
    }
    deny_next(std::move(numbers));
  }

  void deny_next(std::vector<i64> numbers) {
    if (numbers.empty()) return answered();
    const i64 number = numbers.back();
    numbers.pop_back();
    question({"scontrol", "show", "job", "--oneliner", std::to_string(number)},
             [this, number, rest = std::move(numbers)](const CommandResult& said) {
               const auto facts = said.ok() ? read_scontrol(said.out) : std::nullopt;
               const bool gone = facts ? facts->name != name_of(number)  // its number was given again
                                       : said.err.find("Invalid job id") != std::string::npos;
               if (gone)
                 denied_.push_back(name_of(number));
               else if (facts)
                 note({*facts});
               deny_next(rest);
             });
  }
  std::string name_of(i64 number) const {
    for (const auto& [id, job] : held_)
      if (job->number() == number) return job->name();
    return {};
  }

  // Asked with the others' questions, as often as poll_seconds allows.
  void ask_idle() {
    if (around_.options.existing_job > 0 || steady_s() - idle_asked_s_ < around_.options.poll_s)
      return rest();
    idle_asked_s_ = steady_s();
    question(sinfo_idle(), [this](const CommandResult& said) {
      if (said.ok()) {
        idle_ = read_idle(said.out);
        counted_.clear();
        for (const auto& [id, job] : held_)
          if (job->runs()) counted_.insert(id);
      }
      rest();
    });
  }

  void answered() {
    ask_idle();
    const auto jobs = held_;
    for (const auto& [id, job] : jobs) {
      const auto facts = known_.find(job->name());
      const bool denied = std::find(denied_.begin(), denied_.end(), job->name()) != denied_.end();
      job->learn(facts == known_.end() ? std::vector<JobFacts>() : facts->second, denied);
    }
  }

  void failed(const CommandResult& said) {
    rest();
    if (++failures_ != kFailuresToTell || held_.empty()) return;
    const auto why = said.timed_out ? "no answer in time" : said.err.substr(0, said.err.find('\n'));
    if (sink_)
      sink_(Notice{held_.begin()->first,
                   fmt::format("Slurm does not answer ({}); nothing is concluded from that", why)});
  }
  void rest() {
    asking_ = false;
    pace_.round_over(steady_s());
  }

  std::unique_ptr<Commands> commands_;
  Sink sink_;
  PollInterval pace_;
  SlurmSurroundings around_;
  boost::asio::steady_timer timer_;
  std::map<std::string, std::vector<JobFacts>> known_;  // of the round that is being asked, by job name
  std::vector<std::string> denied_;
  bool asking_ = false, no_accounting_ = false;
  int failures_ = 0;
  std::size_t turn_ = 0;
  std::map<std::string, i64> idle_;  // nodes by partition, when they were counted last
  std::set<AllocationId> counted_;   // that had their nodes then
  double idle_asked_s_ = steady_s();
};

}  // namespace

std::unique_ptr<Launcher> make_slurm(boost::asio::io_context& io, SlurmOptions options, Programs programs,
                                     Launcher::Sink sink, std::unique_ptr<Commands> commands) {
  return std::make_unique<Slurm>(io, std::move(options), std::move(programs), std::move(sink),
                                 std::move(commands));
}

}  // namespace sweep::launch
