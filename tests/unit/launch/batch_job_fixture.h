// A batch job over Slurm's commands, scripted, with a clock that stands still: the tests of its life use it.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <deque>

#include "base/files.h"
#include "orchestrator/launch/batch/batch_job.h"
#include "orchestrator/launch/slurm/slurm_scheduler.h"
#include "runtime/spool_writer.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {

class ScriptedCommands final : public Commands {
 public:
  explicit ScriptedCommands(boost::asio::io_context& io) : Commands(io), loop_(io) {}
  awaitable<CommandResult> run(std::vector<std::string> argv, double) override {
    asked.push_back(argv[0]);
    CommandResult said;
    if (argv[0] == "sbatch" && !sbatch.empty()) said = sbatch.front(), sbatch.pop_front();
    if (argv[0] == "scancel") said.code = 0;
    co_await boost::asio::post(loop_, boost::asio::use_awaitable);
    co_return said;
  }
  std::vector<std::string> asked;
  std::deque<CommandResult> sbatch;

 private:
  boost::asio::io_context& loop_;
};

inline CommandResult took(const char* out) {
  CommandResult said;
  said.code = 0, said.out = out;
  return said;
}
inline CommandResult refused(const char* err) {
  CommandResult said;
  said.code = 1, said.err = err;
  return said;
}

class BatchJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    request_.id = "a0001-0badcafe", request_.spool = folder_, request_.seconds = 600;
    job_ = std::make_shared<BatchJob>(host_, request_);
  }

  void settle() {
    io_.restart();
    io_.run();
  }
  void submit(CommandResult said) {
    commands_->sbatch.push_back(std::move(said));
    ASSERT_TRUE(job_->submit());
    settle();
  }
  JobFacts facts(const char* state, const char* reason = "None", i64 id = 17) const {
    JobFacts out;
    out.id = id, out.name = job_->key().name, out.state = state, out.reason = reason;
    out.nodes = "n1", out.seconds_left = 500;
    return out;
  }
  void learn(const JobFacts& one) {
    job_->asked();
    job_->learn({status_of(one)}, false);
    settle();
  }
  void agent_says(std::string_view kind, const nlohmann::json& body) {
    if (!outbox_)
      outbox_.emplace(std::move(*spool::Writer::open(spool::outbox(request_.spool), request_.id, 1)));
    ASSERT_TRUE(outbox_->append(kind, body));
    job_->look();
  }
  const Ended* ended() const {
    for (const auto& event : events_)
      if (const auto* out = std::get_if<Ended>(&event)) return out;
    return nullptr;
  }
  template <class T>
  i64 count() const {
    i64 n = 0;
    for (const auto& event : events_) n += std::holds_alternative<T>(event);
    return n;
  }
  i64 dismissals() const {  // told to its agent, should one still live
    i64 n = 0;
    for (const auto& line : spool::parse(files::read(spool::inbox(request_.spool)).value_or("")).lines)
      n += line.kind == spool::kFinish && line.body.value("now", false);
    return n;
  }
  i64 asked(const std::string& program) const {
    return std::count(commands_->asked.begin(), commands_->asked.end(), program);
  }

  boost::asio::io_context io_;
  ScriptedCommands* commands_ = new ScriptedCommands(io_);  // the scheduler's
  std::vector<Event> events_;
  double now_ = 1000;
  int polls_ = 0;
  static SlurmOptions options() {
    SlurmOptions out;
    out.signal_seconds = 60;
    out.max_pending_minutes = 10;
    return out;
  }
  SlurmScheduler slurm_{std::unique_ptr<Commands>(commands_), options(), {"/bin/true", "/bin/true", true}};
  // The launcher of the job: its events are kept, its outbox is acknowledged at once.
  class Host final : public BatchHost {
   public:
    Host(BatchJobTest& test, Scheduler& scheduler) : test_(test), scheduler_(scheduler) {}
    Scheduler& scheduler() override { return scheduler_; }
    void report(const Event& event) override {
      test_.events_.push_back(event);
      if (const auto* box = std::get_if<Outbox>(&event))
        test_.job_->acknowledge(box->offset + box->bytes.size());
    }
    void poll_soon() override { ++test_.polls_; }
    double now_s() const override { return test_.now_; }
    void start(awaitable<void> work) override { start_coroutine(test_.io_, std::move(work)); }

   private:
    BatchJobTest& test_;
    Scheduler& scheduler_;
  };
  Host host_{*this, slurm_};
  const TemporaryFolder folder_;
  AllocationRequest request_;
  std::shared_ptr<BatchJob> job_;
  std::optional<spool::Writer> outbox_;
};

}  // namespace sweep::launch
