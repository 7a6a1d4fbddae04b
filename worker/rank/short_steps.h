// ShortSteps: on phantom GPUs a step of many micro-steps costs what a straight line through three steps of few says. A
// rehearsal runs those, sees whether they lie on a line, and runs the whole step where they do not.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/shape/schedule.h"
#include "bench_kernels/step/train_step.h"
#include "schema/attempt.h"
#include "schema/records.h"

namespace sweep::rank {

// The times of a step, and what phantom GPUs counted in it.
struct SeenStep {
  step::StepTimes times;
  std::optional<PhantomCounts> counts;
  std::vector<SentTraffic> sent;
};

// The counters of phantom GPUs after something less those before it.
PhantomCounts difference(const PhantomCounts& before, const PhantomCounts& after);

// A step of `micros` on the line through those of more and most micro-steps.
SeenStep on_line(const shape::ShortSteps&, const SeenStep& more, const SeenStep& most, i64 micros);
// How far the three times lie from a line: the change of what a micro-step takes, as a share of it.
double bend(const step::StepTimes& few, const step::StepTimes& more, const step::StepTimes& most);

class ShortStepRunner {
 public:
  // run: a step of so many micro-steps. any_rank: whether one of all ranks says so; asked once. `warmup` steps come first;
  // begins_whole: the first of them has all micro-steps.
  ShortStepRunner(const shape::ShortSteps&, i64 micros, i64 warmup, bool begins_whole,
                  std::function<SeenStep(i64)> run, std::function<bool(bool)> any_rank);

  // A whole step, or what stands for one. Other warm-ups have the most micro-steps of the short ones.
  SeenStep step();
  // A sentence, without its full stop, on which steps ran.
  std::string said() const;

 private:
  shape::ShortSteps sizes_;
  i64 micros_, warmup_;
  bool begins_whole_;
  std::function<SeenStep(i64)> run_;
  std::function<bool(bool)> any_rank_;
  std::optional<bool> bent_;
  double bend_ = 0;
};

// nullopt: the trial's whole steps run. Graphs are captured of a whole one. What the allocator reserves for messages between
// stages grows with their number, since other streams keep freed blocks for a while: there the first step is whole.
std::optional<ShortStepRunner> short_steps_of(const Attempt&, std::function<SeenStep(i64)> run,
                                              std::function<bool(bool)> any_rank);

}  // namespace sweep::rank
