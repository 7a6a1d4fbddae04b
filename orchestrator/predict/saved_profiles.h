// Trainer profiles by name: those built in, and those that `sweep predict --fit ... --save NAME` wrote.
#pragma once
#include <filesystem>
#include <string>

#include "base/expected.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {

// A built-in name, a name in $XDG_CONFIG_HOME/sweep/profiles (else ~/.config), or a path that ends in .json.
Expected<TrainerProfile> find_profile(const std::string& name);
// The path it was written to. Error: no profile of the user's may have a built-in name.
Expected<std::filesystem::path> save_profile(const std::string& name, TrainerProfile);

}  // namespace sweep::predict
