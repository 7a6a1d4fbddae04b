#include "worker/rank/measure.h"

#include <cmath>

#include "base/time.h"
#include "runtime/rank_process.h"

namespace sweep::rank {
namespace {

StepSample sample_of(const step::StepTimes& times) {
  StepSample sample;
  sample.step_ns = times.step_ns;
  sample.forward_ns = times.forward_ns;
  sample.backward_ns = times.backward_ns;
  sample.optimizer_ns = times.optimizer_ns;
  sample.exposed_comm_ns = times.exposed_comm_ns;
  sample.data_ns = times.data_ns;
  sample.tokens = times.tokens;
  sample.loss = times.loss;
  return sample;
}

void check_loss(const StepSample& sample, RankRecord& record) {
  if (std::isfinite(sample.loss) || record.outcome == Outcome::kInvalid) return;
  record.outcome = Outcome::kInvalid;
  record.step = sample.step;
  record.message = "the loss of step " + std::to_string(sample.step) + " is " + std::to_string(sample.loss);
}

// Wall and processor time of the timed steps, over all repeats.
struct Usage {
  double wall_s = 0;
  i64 cpu_ns = 0;
  void add(double wall, i64 cpu) {
    wall_s += wall;
    cpu_ns += cpu;
  }
};

// Collects what the timed steps report beside their times.
class Findings {
 public:
  void add(const step::StepTimes& times) {
    if (times.expert_load) load_ += *times.expert_load, ++loads_;
    if (times.loss_scale) scale_ = times.loss_scale, skipped_ += times.skipped ? 1 : 0;
  }
  void tell(RankRecord& record) const {
    if (loads_ > 0) record.expert_load = load_ / static_cast<double>(loads_);
    record.loss_scale = scale_;
    if (scale_) record.skipped_steps = skipped_;
  }

 private:
  double load_ = 0;
  i64 loads_ = 0, skipped_ = 0;
  std::optional<double> scale_;
};

}  // namespace

void measure(const MeasurePlan& plan, const RunStep& run_step, StopTogether& stop, const Device& device,
             ProgressWriter& progress, RankRecord& record) {
  Usage usage;
  Findings findings;
  i64 timed_retries = 0;
  i64 retries = device.stats().retries;
  bool ends = false;
  for (i64 repeat = 0; repeat < plan.repeats && !ends; ++repeat) {
    for (i64 step = 0; step < plan.warmup_steps + plan.steps && !ends; ++step) {
      const bool warmup = step < plan.warmup_steps;
      const bool first = repeat == 0 && step == 0;
      progress.phase(first ? Phase::kFirstStep : warmup ? Phase::kWarmup : Phase::kStep);
      progress.begin_step();
      record.step = step;
      if (!warmup && !record.startup_ns) record.startup_ns = age_ns();
      const double wall_before_s = steady_s();
      const i64 cpu_before = cpu_ns();
      const step::StepTimes times = run_step();
      if (!warmup) usage.add(steady_s() - wall_before_s, cpu_ns() - cpu_before);
      if (!warmup) findings.add(times);
      StepSample sample = sample_of(times);
      sample.repeat = repeat;
      sample.step = step;
      sample.warmup = warmup;
      sample.alloc_retries = device.stats().retries - retries;
      retries += sample.alloc_retries;
      if (!warmup) timed_retries += sample.alloc_retries;
      check_loss(sample, record);
      record.samples.push_back(sample);
      ends = stop.after(sample);
    }
  }
  findings.tell(record);
  record.alloc_retries = timed_retries;
  if (usage.wall_s > 0) record.cpu_percent = 100.0 * static_cast<double>(usage.cpu_ns) / (1e9 * usage.wall_s);
}

}  // namespace sweep::rank
