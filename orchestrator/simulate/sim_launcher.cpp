// The simulated cluster: its queue, its broken nodes, the life of an allocation.
#include "orchestrator/simulate/sim_launcher.h"

#include <algorithm>
#include <limits>

namespace sweep::simulate {
namespace {

constexpr double kHour = 3600;
constexpr double kNever = std::numeric_limits<double>::infinity();

double mean_between(double per_hour) {
  return per_hour > 0 ? kHour / per_hour : kNever;
}

}  // namespace

SimLauncher::SimLauncher(SimClock& clock, const Assumptions& assumed, SimulatedOutcomes& outcomes,
                         Account& account, Sink sink)
    : clock_(clock),
      assumed_(assumed),
      outcomes_(outcomes),
      account_(account),
      sink_(std::move(sink)),
      free_(assumed.nodes + assumed.spares) {
  break_nodes();
}

void SimLauncher::later(double seconds, const launch::AllocationId& id, std::function<void(Job&)> then) {
  clock_.after_s(seconds, [this, id, then = std::move(then)] {
    if (const auto found = jobs_.find(id); found != jobs_.end()) then(found->second);
  });
}

Expected<void> SimLauncher::request(const launch::AllocationRequest& r) {
  Job& job = jobs_[r.id];
  job.request = r;
  job.outbox = SimOutbox(r.id, r.incarnation);
  job.asked_s = clock_.seconds();
  later(outcomes_.wait(assumed_.queue_s), r.id, [this](Job& mine) {
    mine.eligible = true;
    start_eligible();
  });
  return {};
}

void SimLauncher::start_eligible() {
  for (auto& [id, job] : jobs_)
    if (job.eligible && !job.started && !job.finishing && job.request.nodes <= free_) start(job);
}

void SimLauncher::start(Job& job) {
  const auto id = job.request.id;
  job.started = true;
  job.since_s = clock_.seconds();
  free_ -= job.request.nodes;
  ++account_.allocations;
  account_.waited_s += job.since_s - job.asked_s;
  later(assumed_.agents_s, id, [this](Job& mine) { ready(mine); });
  later(job.request.seconds, id, [this](Job& mine) {
    ++account_.out_of_time;
    end(mine, "TIMEOUT", false, true);
  });
  later(outcomes_.wait(mean_between(assumed_.preempted_per_h)), id, [this](Job& mine) {
    ++account_.preempted;
    end(mine, "PREEMPTED", false, true);
  });
}

void SimLauncher::ready(Job& job) {
  job.ready = true;
  const double held = clock_.seconds() - job.since_s;
  sink_(launch::Started{job.request.id, "simulated", 1, job.request.seconds - held, held});
}

Expected<void> SimLauncher::finish(const launch::AllocationId& id, bool now) {
  later(0, id, [this, now](Job& job) {
    job.finishing = true;
    if (now) {
      job.waiting.clear();
      while (!job.running.empty()) attempt_over(job, job.running.begin()->first, true);
    }
    end_when_empty(job);
  });
  return {};
}

void SimLauncher::kill(const launch::AllocationId& id) {
  later(0, id, [this](Job& job) { end(job, "killed", true, false); });
}

void SimLauncher::acknowledge(const launch::AllocationId& id, std::uint64_t offset) {
  if (const auto found = jobs_.find(id); found != jobs_.end()) found->second.outbox.acknowledge(offset);
}

void SimLauncher::end_when_empty(Job& job) {
  if (job.finishing && job.running.empty() && job.waiting.empty()) end(job, "finished", false, false);
}

// The last thing done with a job: it is gone afterwards.
void SimLauncher::end(Job& job, const std::string& reason, bool lost, bool preempted) {
  const launch::Ended ended{job.request.id, reason, lost, preempted};
  if (job.started) settle(job);
  jobs_.erase(ended.id);
  sink_(ended);
  start_eligible();
}

// Attempts that still run gave no answer.
void SimLauncher::settle(const Job& job) {
  const double now = clock_.seconds(), held_s = now - job.since_s;
  const auto nodes = static_cast<double>(job.request.nodes);
  NodeTime time = job.time;
  for (const auto& [id, running] : job.running)
    time.lost += static_cast<double>(running.attempt.trial.nodes) * (now - running.since_s);
  time.start_up += nodes * std::min(held_s, assumed_.agents_s);
  time.idle = std::max(0.0, nodes * held_s - time.held());  // rounding may leave a little less than nothing
  NodeTime& all = account_.time;
  all.trials += time.trials, all.start_up += time.start_up, all.lost += time.lost, all.idle += time.idle;
  free_ += job.request.nodes;
}

i64 SimLauncher::eligible_nodes() const {
  i64 nodes = 0;
  for (const auto& [id, job] : jobs_)
    if (!job.started) nodes += job.request.nodes;
  return nodes;
}

void SimLauncher::break_nodes() {
  if (!(assumed_.node_mtbf_h > 0)) return;
  const auto nodes = static_cast<double>(assumed_.nodes + assumed_.spares);
  clock_.after_s(outcomes_.wait(assumed_.node_mtbf_h * kHour / nodes), [this] {
    break_one();
    break_nodes();
  });
}

// Any node is as likely as any other: a held one takes its allocation with it.
void SimLauncher::break_one() {
  i64 at = outcomes_.below(assumed_.nodes + assumed_.spares);
  launch::AllocationId hit;
  for (const auto& [id, job] : jobs_) {
    if (!job.started) continue;
    if (at < job.request.nodes && hit.empty()) hit = id;
    at -= job.request.nodes;
  }
  if (hit.empty() && at >= free_) return;  // it is broken already
  ++account_.nodes_broken;
  --free_;
  clock_.after_s(assumed_.repair_h * kHour, [this] {
    ++free_;
    start_eligible();
  });
  if (hit.empty()) return;
  ++account_.allocations_broken;
  end(jobs_.at(hit), "NODE_FAIL", true, false);
}

}  // namespace sweep::simulate
