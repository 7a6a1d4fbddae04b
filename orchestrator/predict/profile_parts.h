// The parts of a trainer profile's JSON that are lists: trainers, rules, effects and the residual.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {

// Error: a key of an object is none of `known`; `place` stands before the key, which is empty or ends in ": ".
Expected<void> check_keys(const nlohmann::ordered_json&, const std::string& place,
                          const std::vector<std::string>& known);

// Adds those that the profile has.
void write_parts(const TrainerProfile&, nlohmann::ordered_json& out);
// A part that the JSON does not hold stays empty.
Expected<void> read_parts(const nlohmann::ordered_json&, TrainerProfile&);

}  // namespace sweep::predict
