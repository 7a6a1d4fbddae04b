// A trial written as the configuration of another trainer: flags of torchtitan and Megatron-LM, keys of a nanotron
// config, a DeepSpeed JSON. Settings that the other trainer does not have are listed, never dropped silently.
//
// Names, units and values were read in these sources; six layouts of different kinds were given to the parsers of the
// first two, and nanotron's keys matched with its config classes:
//   torchtitan   v0.2.2 (2026-02-20)       torchtitan/config/job_config.py, distributed/pipeline_parallel.py
//   Megatron-LM  core_v0.19.0 (2026-08-19) megatron/training/arguments.py, core/transformer/transformer_config.py
//   nanotron     2411b022 (2026-04-07)     src/nanotron/config/{config,parallelism_config,models_config}.py
//   DeepSpeed    v0.19.5 (2026-08)         deepspeed/runtime/{config,precision_config}.py, runtime/zero/config.py
#pragma once
#include <array>
#include <string>
#include <vector>

#include "schema/trial.h"

namespace sweep::interop {

inline constexpr const char* kTorchtitan = "torchtitan";
inline constexpr const char* kMegatron = "Megatron-LM";
inline constexpr const char* kNanotron = "nanotron";
inline constexpr const char* kDeepSpeed = "DeepSpeed";
inline constexpr std::array kTrainers{kTorchtitan, kMegatron, kNanotron, kDeepSpeed};

struct TrainerConfig {
  // One of kTrainers.
  std::string trainer;
  // Ready to paste.
  std::string text;
  // One sentence for each setting of the trial that `text` does not express.
  std::vector<std::string> unsupported_settings;
};

// One for each of kTrainers, in that order.
std::vector<TrainerConfig> trainer_configs(const Trial&);

TrainerConfig torchtitan_config(const Trial&);
TrainerConfig megatron_config(const Trial&);
TrainerConfig nanotron_config(const Trial&);
TrainerConfig deepspeed_config(const Trial&);

}  // namespace sweep::interop
