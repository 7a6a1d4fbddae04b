#include "orchestrator/launch/batch/batch_launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <set>

#include "base/time.h"
#include "orchestrator/launch/batch/batch_job.h"
#include "orchestrator/launch/batch/poll_interval.h"
#include "orchestrator/launch/held_allocations.h"

namespace sweep::launch {
namespace {

// Between two looks into the outboxes.
constexpr auto kLook = std::chrono::milliseconds(100);
// Failures in a row before people are told.
constexpr int kFailuresToTell = 3;

class BatchLauncher final : public HeldAllocations<BatchJob>, public BatchHost {
 public:
  BatchLauncher(boost::asio::io_context& io, std::unique_ptr<Scheduler> scheduler, double longest_pause_s,
                Sink sink)
      : scheduler_(std::move(scheduler)), sink_(std::move(sink)), pace_(longest_pause_s), timer_(io) {
    tick();
  }
  ~BatchLauncher() override {
    sink_ = nullptr;
    abandon_all();
    scheduler_.reset();
  }

  Expected<void> request(const AllocationRequest& wanted) override {
    if (held_.contains(wanted.id)) return fail(fmt::format("allocation {} exists already", wanted.id));
    auto job = std::make_shared<BatchJob>(*this, fenced(wanted));
    if (auto sent = job->submit(); !sent) return sent;
    held_[wanted.id] = std::move(job);
    return {};
  }

  // Idle nodes, less those that were asked for since they were counted.
  i64 idle_nodes(const std::string& hardware) const override {
    i64 idle = scheduler_->idle_nodes(hardware);
    for (const auto& [id, job] : held_)
      if (!had_nodes_.contains(id)) idle -= job->request().nodes;
    return std::max<i64>(0, idle);
  }

  Expected<std::optional<AllocationRequest>> adopt(const AllocationId& id, const std::filesystem::path& spool,
                                                   i64 incarnation, std::uint64_t offset) override {
    AllocationRequest known;
    known.id = id;
    known.spool = spool;
    known.incarnation = incarnation;
    known.outbox_offset = offset;
    auto job = std::make_shared<BatchJob>(*this, fenced(known));
    SWEEP_GET(const auto taken, job->adopt());
    if (!taken) return std::optional<AllocationRequest>();
    held_[id] = job;
    return std::optional(job->request());
  }

 private:
  Scheduler& scheduler() override { return *scheduler_; }
  void report(const Event& event) override {
    if (sink_) sink_(event);
  }
  void poll_soon() override { pace_.poll_soon(steady_s()); }
  double now_s() const override { return steady_s(); }
  void start(awaitable<void> work) override { start_coroutine(timer_.get_executor(), std::move(work)); }

  void tick() {
    timer_.expires_after(kLook);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      const auto jobs = held_;  // an event handler may request another
      for (const auto& [id, job] : jobs) job->look();
      std::erase_if(held_, [](const auto& each) { return each.second->closed(); });
      if (!querying_ && !held_.empty() && pace_.due(steady_s())) start(query());
      tick();
    });
  }

  awaitable<void> query() {
    querying_ = true;
    std::vector<JobKey> keys;
    for (const auto& [id, job] : held_) {
      keys.push_back(job->key());
      job->asked();
    }
    const auto answer = co_await scheduler_->query(std::move(keys), counted());
    pace_.round_over(steady_s());
    if (answer) {
      failures_ = 0;
      learn(*answer);
      const bool idle_counted = co_await scheduler_->count_idle(counted());
      if (idle_counted) {
        had_nodes_.clear();
        for (const auto& [id, job] : held_)
          if (job->had_nodes()) had_nodes_.insert(id);
      }
    }
    querying_ = false;
    if (!answer) failed(answer.error().message);
  }

  Scheduler::Counted counted() {
    return [this] { pace_.asked(steady_s()); };
  }

  void learn(const QueryAnswer& answer) {
    const auto jobs = held_;  // an event handler may request another
    for (const auto& [id, job] : jobs) {
      const auto name = job->key().name;
      const auto found = answer.jobs.find(name);
      job->learn(found == answer.jobs.end() ? std::vector<JobStatus>() : found->second,
                 std::ranges::find(answer.denied, name) != answer.denied.end());
    }
  }

  void failed(const std::string& why) {
    if (++failures_ != kFailuresToTell || held_.empty() || !sink_) return;
    sink_(Notice{held_.begin()->first, fmt::format("{} does not answer ({}); nothing is concluded from that",
                                                   scheduler_->name(), why)});
  }

  std::unique_ptr<Scheduler> scheduler_;
  Sink sink_;
  PollInterval pace_;
  boost::asio::steady_timer timer_;
  bool querying_ = false;
  int failures_ = 0;
  // Allocations that had their nodes when the idle ones were counted.
  std::set<AllocationId> had_nodes_;
};

}  // namespace

std::unique_ptr<Launcher> make_batch(boost::asio::io_context& io, std::unique_ptr<Scheduler> scheduler,
                                     double longest_pause_s, Launcher::Sink sink) {
  return std::make_unique<BatchLauncher>(io, std::move(scheduler), longest_pause_s, std::move(sink));
}

}  // namespace sweep::launch
