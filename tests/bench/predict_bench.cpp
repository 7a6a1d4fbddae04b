// predict_bench: configurations for each second of one core through the plan's rules and memory model alone,
// and through its predictors of memory and time: GPUs by the trainer profile, GPUs and processors by a hardware
// profile. One JSON line for each.
#include <fmt/format.h>

#include <ctime>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"
#include "orchestrator/predict/predictor.h"
#include "orchestrator/predict/step_cost.h"

namespace {

using namespace sweep;

// Every layout of the nodes' ranks over tp, pp and dp, with micro-batches, ZeRO stages, recomputation and
// schedules.
std::vector<Trial> trials_of(const char* hardware, i64 nodes, i64 ranks) {
  std::vector<Trial> out;
  for (const char* model : {"llama3-8b", "gpt2", "mixtral-8x7b"})
    for (i64 tp = 1; tp <= 8; tp *= 2)
      for (i64 pp = 1; pp <= 8 && tp * pp <= nodes * ranks; pp *= 2)
        for (i64 micro = 1; micro <= 8; micro *= 2)
          for (i64 zero = 0; zero <= 3; ++zero)
            for (const Recompute recompute : {Recompute::kNone, Recompute::kFull})
              for (const Schedule schedule :
                   {Schedule::k1f1b, Schedule::kInterleaved, Schedule::kZeroBubble}) {
                Trial t;
                t.model = model, t.spec = shape::find_model(model).value();
                t.hardware = hardware, t.nodes = nodes, t.gpus_per_node = ranks;
                t.precision = Precision::kBf16;
                t.tp = tp, t.pp = pp, t.dp = nodes * ranks / (tp * pp), t.zero = zero,
                t.recompute = recompute;
                t.schedule = schedule, t.vpp = schedule == Schedule::kInterleaved ? 2 : 1;
                t.micro_batch_size = micro, t.grad_accum = 32, t.global_batch_size = t.dp * micro * 32;
                if (!plan::first_objection(t)) out.push_back(std::move(t));
              }
  return out;
}

void measure(const char* figure, const std::vector<Trial>& trials, const auto& value_of) {
  constexpr double kSeconds = 1;
  const std::clock_t from = std::clock();
  double seconds = 0, sum = 0;
  i64 count = 0;
  while (seconds < kSeconds) {
    for (const Trial& t : trials) sum += value_of(t);
    count += static_cast<i64>(trials.size());
    seconds = static_cast<double>(std::clock() - from) / CLOCKS_PER_SEC;
  }
  fmt::print("{{\"figure\": \"{}\", \"trials\": {}, \"per_second\": {:.0f}, \"checksum\": {:.6g}}}\n", figure,
             trials.size(), static_cast<double>(count) / seconds, sum / static_cast<double>(count));
}

}  // namespace

int main() {
  const auto gpus = trials_of("h100-sxm-80gb", 8, 8), cpus = trials_of("cpu", 1, 8);
  const shape::Hardware h100 = shape::find_hardware("h100-sxm-80gb").value();
  shape::HardwareProfile profile = predict::catalogue_profile(h100);
  measure("rules_and_memory", gpus, [](const Trial& t) {
    return plan::first_objection(t) ? 0 : predict::estimate_memory(t).total() * 1e-9;
  });
  const auto by = [](const predict::Predictor& predictor) {
    return [&predictor](const Trial& t) { return predictor.predict(t, {}).step_ms.value_or(0); };
  };
  measure("gpu_by_trainer_profile", gpus, by(predict::roofline()));
  const auto calibrated = predict::calibrated({profile});
  measure("gpu_by_hardware_profile", gpus, by(*calibrated));
  measure("cpu", cpus, by(predict::roofline()));
}
