// Every key the grid reader accepts, by section: the reader checks against it and the JSON Schema is tested
// against it.
#pragma once
#include <array>
#include <string_view>

namespace sweep::grid {

inline constexpr std::array<std::string_view, 14> kTopKeys{
    "name",    "question", "model",  "base",    "grid",    "zip",    "where",
    "include", "exclude",  "derive", "repeats", "measure", "limits", "launch"};
inline constexpr std::array<std::string_view, 3> kMeasureKeys{"warmup_steps", "steps", "repeats"};
inline constexpr std::array<std::string_view, 4> kLimitKeys{"gpu_hours", "trial_seconds", "retries_crash",
                                                            "retries_infra"};
inline constexpr std::array<std::string_view, 2> kValueForms{"pow2", "range"};
inline constexpr std::array<std::string_view, 14> kModelKeys{"config_json",
                                                             "name",
                                                             "family",
                                                             "layers",
                                                             "hidden_size",
                                                             "heads",
                                                             "kv_heads",
                                                             "head_dim",
                                                             "intermediate_size",
                                                             "vocab_size",
                                                             "max_positions",
                                                             "tie_embeddings",
                                                             "experts",
                                                             "experts_per_token"};

// Keys of `launch`, by launcher. What each means: docs of the launcher.
enum class LaunchKind { kText, kCount, kTexts, kTime, kHardware };
struct LaunchKey {
  std::string_view launcher, key;
  LaunchKind kind;
};
inline constexpr std::array kLaunchKeys{
    LaunchKey{"local", "slots", LaunchKind::kCount},
    LaunchKey{"ssh", "hosts", LaunchKind::kTexts},
    LaunchKey{"ssh", "user", LaunchKind::kText},
    LaunchKey{"ssh", "port", LaunchKind::kCount},
    LaunchKey{"ssh", "interface", LaunchKind::kText},
    LaunchKey{"ssh", "directory", LaunchKind::kText},
    LaunchKey{"ssh", "slots", LaunchKind::kCount},
    LaunchKey{"slurm", "partition", LaunchKind::kText},
    LaunchKey{"slurm", "account", LaunchKind::kText},
    LaunchKey{"slurm", "qos", LaunchKind::kText},
    LaunchKey{"slurm", "constraint", LaunchKind::kText},
    LaunchKey{"slurm", "reservation", LaunchKind::kText},
    LaunchKey{"slurm", "nodelist", LaunchKind::kText},
    LaunchKey{"slurm", "exclude", LaunchKind::kText},
    LaunchKey{"slurm", "gres", LaunchKind::kText},
    LaunchKey{"slurm", "interface", LaunchKind::kText},
    LaunchKey{"slurm", "max_nodes", LaunchKind::kCount},
    LaunchKey{"slurm", "max_allocations", LaunchKind::kCount},
    LaunchKey{"slurm", "time", LaunchKind::kTime},
    LaunchKey{"slurm", "extra", LaunchKind::kTexts},
    LaunchKey{"slurm", "hardware", LaunchKind::kHardware},
};
inline constexpr std::array<std::string_view, 3> kLaunchers{"local", "ssh", "slurm"};
// Of launch.slurm.hardware.<catalogue name>: what to ask Slurm for to get it.
inline constexpr std::array<std::string_view, 6> kHardwareKeys{"partition",  "account",     "qos",
                                                               "constraint", "reservation", "gres"};

}  // namespace sweep::grid
