// Launch form: a configuration as another trainer takes it: flags of torchtitan and Megatron-LM, keys of a nanotron
// config, a DeepSpeed JSON. What that trainer cannot be told is named, never dropped in silence.
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

#include "schema/result_row.h"

namespace sweep::report {

inline constexpr const char* kTorchtitan = "torchtitan";
inline constexpr const char* kMegatron = "Megatron-LM";
inline constexpr const char* kNanotron = "nanotron";
inline constexpr const char* kDeepSpeed = "DeepSpeed";
inline constexpr std::array kLaunchTools{kTorchtitan, kMegatron, kNanotron, kDeepSpeed};

struct LaunchForm {
  std::string tool;                               // one of kLaunchTools
  std::string text;                               // ready to paste
  std::vector<std::string> unsupported_settings;  // sentences: what this form leaves open or cannot express
};

std::vector<LaunchForm> launch_forms(const ResultRow&);

LaunchForm torchtitan_form(const Trial&);
LaunchForm megatron_form(const Trial&);
LaunchForm nanotron_form(const Trial&);
LaunchForm deepspeed_form(const Trial&);

}  // namespace sweep::report
