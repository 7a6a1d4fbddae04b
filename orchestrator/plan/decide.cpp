#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "bench_kernels/shape/around_step.h"
#include "bench_kernels/shape/graphs.h"
#include "orchestrator/plan/planner.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"

namespace sweep::plan {
namespace {

// The trial with the least model states among those that its program may make of it.
Trial with_least_states(Trial t, LeftToProgram left) {
  if (t.workload != Workload::kCommand) return t;
  if (left.zero) t.zero = 3, t.dp_shard.reset();
  if (left.precision) t.precision = Precision::kBf16;
  return t;
}

// Only a certain no: the model states, which nothing avoids, against the budget. Close calls are run.
std::optional<Objection> beyond_memory(const PlanEntry& e, LeftToProgram left) {
  const shape::Hardware* h = shape::known_hardware(e.trial.hardware);
  const auto budget = h ? predict::memory_budget(e.trial, *h) : std::nullopt;
  // The states are a part of what is predicted.
  if (!budget || (e.predicted.bytes && shape::real(*e.predicted.bytes) <= *budget)) return {};
  const predict::MemoryEstimate m = predict::estimate_memory(with_least_states(e.trial, left));
  if (m.states() <= *budget) return {};
  return Objection{{"memory", fmt::format("{}; the model states alone, {} with all gradients, exceed it",
                                          predict::memory_sentence(m, *budget), human_bytes(m.states()))},
                   Outcome::kPruned};
}

// Steps that are captured cost more than those that are measured.
std::optional<Objection> captured_late(const Trial& t, const MeasurePlan& measure) {
  if (!t.cuda_graph || t.workload == Workload::kCommand || measure.warmup_steps >= shape::kStepsBeforeGraphs)
    return {};
  return Objection{
      {"cuda_graph",
       fmt::format(
           "cuda_graph with warmup_steps {}: the second step captures the graphs, and would be timed; "
           "take warmup_steps {} or more",
           measure.warmup_steps, shape::kStepsBeforeGraphs)},
      Outcome::kUnsupported};
}

// Reasons that always hold (rules, memory) come before "not built yet", so that a plan stays true as more is
// built.
void judge(PlanEntry& e, const MeasurePlan& measure, const predict::Predictor& predictor,
           LeftToProgram left) {
  if (!e.admitted) return;
  const auto impossible = first_objection(e.trial);
  if (impossible && impossible->verdict != Outcome::kUnsupported) return reject(e, *impossible);
  if (!has_model(e.trial)) return;  // a command that the plan knows nothing of
  if (!impossible || impossible->rule == "precision") e.predicted = predictor.predict(e.trial, measure);
  if (impossible) return reject(e, *impossible);
  if (const auto o = beyond_memory(e, left)) return reject(e, *o);
  if (const auto o = later_objection(e.trial, measure)) return reject(e, *o);
}

std::optional<Objection> beyond_machine(const Trial& t, const Resources& r, LeftToProgram left) {
  const auto no = [](std::string why) { return Objection{{"resources", std::move(why)}, Outcome::kPruned}; };
  if (t.nodes > 1) return no(fmt::format("nodes {} > 1, and this is one machine", t.nodes));
  if (r.host_memory_bytes > 0 && t.workload != Workload::kCommand)
    if (auto why = shape::host_memory_objection(t, static_cast<double>(r.host_memory_bytes)))
      return no(std::move(*why));
  if (t.hardware != "cpu") {
    const bool share = t.backend == CommBackend::kGloo && r.gpus > 0;  // NCCL refuses two ranks on one GPU
    if (share || t.gpus_per_node <= r.gpus) return {};
    return no(fmt::format("needs {} GPUs, this machine has {}", t.gpus_per_node, r.gpus));
  }
  if (t.gpus_per_node > r.cpu_slots)
    return no(
        fmt::format("needs {} CPU ranks at once, this machine offers {}", t.gpus_per_node, r.cpu_slots));
  if (!has_model(t)) return {};
  const double all =
      predict::estimate_memory(with_least_states(t, left)).states() * static_cast<double>(t.gpus_per_node);
  if (r.host_memory_bytes > 0 && all > static_cast<double>(r.host_memory_bytes))
    return no(fmt::format("the model states of {} ranks need {}, this machine has {}", t.gpus_per_node,
                          human_bytes(all), human_bytes(static_cast<double>(r.host_memory_bytes))));
  return {};
}

}  // namespace

std::optional<Objection> later_objection(const Trial& t, const MeasurePlan& measure) {
  const auto late = captured_late(t, measure);
  return late ? late : not_built_yet(t);
}

void reject(PlanEntry& e, const Objection& o) {
  e.admitted = false;
  e.verdict = o.verdict;
  e.rule = o.rule;
  e.reason = o.reason;
}

void decide(std::vector<PlanEntry>& entries, const MeasurePlan& measure, const predict::Predictor& predictor,
            LeftToProgram left) {
  for (PlanEntry& e : entries) judge(e, measure, predictor, left);
  set_order(entries);
}

void prune_beyond(std::vector<PlanEntry>& entries, const Resources& resources, LeftToProgram left) {
  for (PlanEntry& e : entries)
    if (e.admitted && !first_objection(e.trial))
      if (const auto o = beyond_machine(e.trial, resources, left)) reject(e, *o);
}

Deadlines deadlines_for(const Prediction& p, const Trial& t, const MeasurePlan& measure) {
  // Measured first steps took up to a hundred times a later one (Megatron: 5-264 s against 1-22 s), hence the
  // floors.
  constexpr double kFloor = 120, kStepFloor = 30, kSlack = 20, kUnknownStep = 300;
  constexpr double kInitBytesPerSecond = 100e6;  // random weights made by one CPU thread
  constexpr double kDiskBytesPerSecond = 50e6;   // speed of a slow disk
  constexpr double kTokensPerSecond = 1e5;       // read and split from text
  constexpr double kPairsPerSecond = 50e6;       // speed of text metrics: a quarter of what was measured
  // A program of the user's own imports, downloads and compiles before its first step.
  constexpr double kCommandFloor = 600, kCommandStepFloor = 120;
  const bool command = t.workload == Workload::kCommand;
  const double floor = command ? kCommandFloor : kFloor,
               step_floor = command ? kCommandStepFloor : kStepFloor;
  Deadlines d;
  d.startup_s = floor;
  if (t.hardware == "cpu") d.startup_s += static_cast<double>(p.bytes.value_or(0)) / kInitBytesPerSecond;
  const double data_s = shape::data_tokens(t) / kTokensPerSecond;
  d.startup_s += data_s;  // they are written there
  const double step = (p.step_ms ? *p.step_ms / 1e3 : kUnknownStep / kSlack) + data_s / kSlack;
  d.first_step_s = std::max(floor, kSlack * step);
  d.step_s = std::max(step_floor, kSlack * step);
  d.total_s = d.startup_s + d.first_step_s + d.step_s + measure.all_steps() * std::max(1.0, kSlack * step);
  if (command) return d;
  // A sequence takes no longer in an evaluation than in a step. Ranks without the last stage wait for text metrics.
  if (t.eval_batch_size > 0) {
    const double share =
        static_cast<double>(t.eval_batch_size) / static_cast<double>(t.micro_batch_size * t.grad_accum);
    const double metrics_s = shape::compared_pairs(t) / kPairsPerSecond;
    d.around_s = std::max(floor, d.step_s * std::max(1.0, share)) + metrics_s;
    d.total_s += d.around_s + static_cast<double>(t.eval_batches) * std::max(1.0, kSlack * step * share);
  }
  const auto on_disk = [&](i64 bytes, bool by_one, double times) {
    const double node_bytes = static_cast<double>(bytes) / (by_one ? 1.0 : static_cast<double>(t.nodes));
    const double seconds = std::max(floor, times * node_bytes / kDiskBytesPerSecond) + d.step_s;
    d.around_s = std::max(d.around_s, seconds);
    d.total_s += seconds;
  };
  if (t.checkpoint != CheckpointKind::kNone)
    on_disk(shape::checkpoint_bytes(t), t.checkpoint == CheckpointKind::kFull, 1);
  if (t.weights_load != WeightsLoad::kNone)  // written, then read
    on_disk(shape::load_bytes(t), t.weights_load == WeightsLoad::kRank0, 2);
  return d;
}

}  // namespace sweep::plan
