// The predictor of our own step: bytes stage by stage (memory.h). Time: on hardware that `sweep calibrate`
// has measured, and on processors, part by part from a hardware profile (step_cost.h); on other GPUs as
// `sweep predict` computes it, under the trainer profile of our step.
#include <algorithm>
#include <cmath>
#include <limits>

#include "orchestrator/predict/memory.h"
#include "orchestrator/predict/predict.h"
#include "orchestrator/predict/predictor.h"
#include "orchestrator/predict/step_cost.h"

namespace sweep::predict {
namespace {

const TrainerProfile& step_profile() {
  static const TrainerProfile& profile = *built_in_profile("sweep");
  return profile;
}

double gpu_step_seconds(const Trial& t, const TrainerProfile& profile, const shape::Hardware& h) {
  thread_local Layout layout;
  thread_local StageTimes times;
  make_layout(t, profile, layout);
  profile.time_model->stage_times(layout, profile, h, times);
  return profile.time_model->seconds({t, layout, times, profile, h}, {}).step_s;
}

i64 saturated(double x) {
  return x < 9e18 ? static_cast<i64>(std::llround(x)) : std::numeric_limits<i64>::max();
}

// REQUIRES of the times: a precision that the hardware has.
double catalogue_step_seconds(const Trial& t, const shape::Hardware& h) {
  if (!h.gpu.empty()) return step_time(t, step_profile(), h, {}).step_s;
  static const shape::HardwareProfile processors = catalogue_profile(h);
  return step_cost(t, processors, h).step_s;
}

class Roofline final : public Predictor {
 public:
  explicit Roofline(std::vector<shape::HardwareProfile> profiles, std::string trainer)
      : profiles_(std::move(profiles)), trainer_(std::move(trainer)) {}

  Prediction predict(const Trial& t, const MeasurePlan& plan) const override {
    Prediction p;
    const shape::Hardware* h = shape::known_hardware(t.hardware);
    p.bytes = saturated(estimate_memory(t).total());
    if (!h->gpu.empty() && !why_no_time(t, *h).empty()) return p;
    const double step = step_seconds(t, *h);
    p.step_ms = 1e3 * step;
    const ProfileFacts& facts = step_profile().facts;
    const double startup = h->gpu.empty() ? facts.cpu_startup_s : facts.startup_s;
    p.seconds = startup + step * plan.all_steps();
    return p;
  }

 private:
  double step_seconds(const Trial& t, const shape::Hardware& h) const {
    const TrainerProfile* trainer = nullptr;
    if (t.workload == Workload::kCommand && !trainer_.empty() && !h.gpu.empty())
      trainer = profile_of_trainer(trainer_, h.name);
    if (trainer != nullptr) return gpu_step_seconds(t, *trainer, h);
    const auto* measured = profile_for(profiles_, t.hardware);
    return measured != nullptr ? step_cost(t, *measured, h).step_s : catalogue_step_seconds(t, h);
  }

  std::vector<shape::HardwareProfile> profiles_;
  std::string trainer_;
};

}  // namespace

const Predictor& roofline() {
  static const Roofline instance({}, {});
  return instance;
}

std::unique_ptr<Predictor> calibrated(std::vector<shape::HardwareProfile> profiles, std::string trainer) {
  return std::make_unique<Roofline>(std::move(profiles), std::move(trainer));
}

const shape::HardwareProfile* profile_for(std::span<const shape::HardwareProfile> profiles,
                                          std::string_view hardware) {
  for (const auto& p : profiles)
    if (p.name == hardware && !p.products.empty()) return &p;
  return nullptr;
}

}  // namespace sweep::predict
