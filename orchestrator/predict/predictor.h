// The predictors that a plan asks for the memory and time of our own step.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench_kernels/shape/hardware_profile.h"
#include "schema/attempt.h"
#include "schema/plan_entry.h"

namespace sweep::predict {

class Predictor {
 public:
  virtual ~Predictor() = default;
  // REQUIRES: a trial without an objection of the plan's rules (plan/rules.h), but that the hardware may lack
  // its precision: its bytes are known then, its time is not.
  virtual Prediction predict(const Trial&, const MeasurePlan&) const = 0;
};
// Predicts by the catalogue's figures alone.
const Predictor& roofline();
// Predicts by what `sweep calibrate` measured of a trial's hardware, if there is a profile of its name; else
// like roofline(). `trainer`: the recipe of the commands; their times are by its trainer profile, if it has one.
std::unique_ptr<Predictor> calibrated(std::vector<shape::HardwareProfile>, std::string trainer = {});
// The profile that plans for this hardware use: that of its name. Null: there is none, or it has no matrix
// products.
const shape::HardwareProfile* profile_for(std::span<const shape::HardwareProfile>, std::string_view hardware);

}  // namespace sweep::predict
