// Trainer profiles by name: those built in, and those that `sweep predict --fit ... --save NAME` wrote.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>

#include "base/expected.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::predict {

// A built-in name, a name in $XDG_CONFIG_HOME/sweep/profiles (else ~/.config), or a path that ends in .json.
Expected<TrainerProfile> find_profile(const std::string& name);
// The profile that is asked for, else that of the trainer on this hardware; "" is the built-in step. Says on the
// stream of messages which it is, where its numbers come from, and when it is another trainer's or machine's.
Expected<TrainerProfile> choose_profile(std::ostream& messages, const std::string& name,
                                        const std::string& trainer, const std::string& hardware);
// The path it was written to. Error: no profile of the user's may have a built-in name.
Expected<std::filesystem::path> save_profile(const std::string& name, TrainerProfile);

}  // namespace sweep::predict
