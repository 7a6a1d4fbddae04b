// A trial written as the configuration of another trainer: its recipe (recipes.h), filled with the trial.
// Settings that the other trainer does not have are listed, never dropped silently. What each recipe was
// checked with stands in its file.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/trial.h"

namespace sweep::interop {

struct TrainerConfig {
  // The name for `best --for`: "torchtitan", "Megatron-LM".
  std::string trainer;
  // Ready to paste.
  std::string text;
  // One sentence for each setting of the trial that `text` does not express.
  std::vector<std::string> unsupported_settings;
};

// The trainer that a person calls so, by its name or its recipe's ("megatron"); case does not count. Nullopt: none.
std::optional<std::string> trainer_named(std::string_view word);
// The trainers that have a configuration of their own, in the order of their recipes.
std::vector<std::string> trainers();
// One for each of trainers().
std::vector<TrainerConfig> trainer_configs(const Trial&);
// REQUIRES: the trainer is one of trainers().
TrainerConfig trainer_config(const Trial&, std::string_view trainer);

}  // namespace sweep::interop
