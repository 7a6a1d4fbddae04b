// A file of configurations, or of measured rows, as predict and replay take it.
#pragma once
#include <string>

#include "orchestrator/import/configs.h"

namespace sweep::cli {

// `options.shown_as` is taken from the path.
Expected<imports::Configs> read_config_file(const std::string& path, imports::ConfigOptions options);
// The help of --hardware: its values, and what is taken without it.
std::string hardware_sentence(const std::string& values);
// The trainer of --trainer, else the one that the rows name. Error: they name two, and no --profile decides.
Expected<std::string> trainer_for(const std::string& trainer, const std::string& profile,
                                  const imports::Configs&);

}  // namespace sweep::cli
