#include "orchestrator/cli/config_file.h"

#include <fmt/format.h>

#include "base/input_file.h"
#include "base/text.h"
#include "orchestrator/predict/trainer_profile.h"

namespace sweep::cli {

Expected<imports::Configs> read_config_file(const std::string& path, imports::ConfigOptions options) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  const auto file = read_input(path, kMostBytes, Streams::kTaken);
  if (!file) return tl::unexpected<Error>(file.error());
  options.shown_as = file->shown_as;
  return imports::read_configs(file->bytes, options);
}

std::string hardware_sentence(const std::string& values) {
  return fmt::format("{}; else the column 'hardware', else {}", values, imports::kDefaultHardware);
}

namespace {

// Two names are one trainer's where they are equal, or where one profile has both: a recipe has a name of its own.
bool same_trainer(const std::string& a, const std::string& b) {
  const auto* of_a = predict::profile_of_trainer(a, "");
  return same_word(a, b) || (of_a != nullptr && of_a == predict::profile_of_trainer(b, ""));
}

}  // namespace

Expected<std::string> trainer_for(const std::string& trainer, const std::string& profile,
                                  const imports::Configs& configs) {
  if (!trainer.empty()) return trainer;
  auto own = imports::trainer_of(configs, same_trainer);
  return own || profile.empty() ? own : std::string();
}

}  // namespace sweep::cli
