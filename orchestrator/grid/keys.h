// Every key the grid reader accepts, by section: the reader checks against it and the JSON Schema is tested
// against it.
#pragma once
#include <array>
#include <string_view>

namespace sweep::grid {

inline constexpr std::array<std::string_view, 15> kTopKeys{
    "name",    "question", "model",  "base",    "grid",    "zip",    "where",
    "include", "exclude",  "derive", "repeats", "measure", "limits", "launch",  "workload"};
inline constexpr std::array<std::string_view, 3> kMeasureKeys{"warmup_steps", "steps", "repeats"};
inline constexpr std::array<std::string_view, 5> kLimitKeys{"gpu_hours", "trial_seconds", "hang_seconds",
                                                            "retries_crash", "retries_infra"};
inline constexpr std::array<std::string_view, 2> kValueForms{"pow2", "range"};
inline constexpr std::array<std::string_view, 15> kModelKeys{
    "base",        "config_json",   "name",           "family",   "layers",
    "hidden_size", "heads",         "kv_heads",       "head_dim", "intermediate_size",
    "vocab_size",  "max_positions", "tie_embeddings", "experts",  "experts_per_token"};

// Keys of `launch`, by launcher. What each means: docs of the launcher.
enum class LaunchKind {  // kSpan: seconds, one at least
  kText,
  kCount,
  kReal,
  kSpan,
  kPort,
  kFlag,
  kTexts,
  kTime,
  kHardware,
  kAsks,
  kContainer,
  kHosts,
  kScreen
};
struct LaunchKey {
  std::string_view launcher, key;
  LaunchKind kind;
};
inline constexpr std::array kLaunchKeys{
    LaunchKey{"local", "slots", LaunchKind::kCount},
    LaunchKey{"local", "screen", LaunchKind::kScreen},
    LaunchKey{"ssh", "hosts", LaunchKind::kHosts},
    LaunchKey{"ssh", "screen", LaunchKind::kScreen},
    LaunchKey{"ssh", "user", LaunchKind::kText},
    LaunchKey{"ssh", "port", LaunchKind::kPort},
    LaunchKey{"ssh", "interface", LaunchKind::kText},
    LaunchKey{"ssh", "directory", LaunchKind::kText},
    LaunchKey{"ssh", "slots", LaunchKind::kCount},
    LaunchKey{"ssh", "agent", LaunchKind::kText},
    LaunchKey{"ssh", "rank", LaunchKind::kText},
    LaunchKey{"ssh", "config", LaunchKind::kText},
    LaunchKey{"ssh", "lease_seconds", LaunchKind::kSpan},
    LaunchKey{"ssh", "silence_seconds", LaunchKind::kSpan},
    LaunchKey{"slurm", "screen", LaunchKind::kScreen},
    LaunchKey{"slurm", "partition", LaunchKind::kText},
    LaunchKey{"slurm", "account", LaunchKind::kText},
    LaunchKey{"slurm", "qos", LaunchKind::kText},
    LaunchKey{"slurm", "constraint", LaunchKind::kText},
    LaunchKey{"slurm", "reservation", LaunchKind::kText},
    LaunchKey{"slurm", "nodelist", LaunchKind::kText},
    LaunchKey{"slurm", "exclude", LaunchKind::kText},
    LaunchKey{"slurm", "gres", LaunchKind::kText},
    LaunchKey{"slurm", "licenses", LaunchKind::kText},
    LaunchKey{"slurm", "switches", LaunchKind::kText},
    LaunchKey{"slurm", "wckey", LaunchKind::kText},
    LaunchKey{"slurm", "mem", LaunchKind::kText},
    LaunchKey{"slurm", "gpus_per_node", LaunchKind::kText},
    LaunchKey{"slurm", "cpus_per_task", LaunchKind::kCount},
    LaunchKey{"slurm", "nice", LaunchKind::kCount},
    LaunchKey{"slurm", "exclusive", LaunchKind::kFlag},
    LaunchKey{"slurm", "colocate", LaunchKind::kFlag},
    LaunchKey{"slurm", "slots", LaunchKind::kCount},
    LaunchKey{"slurm", "head", LaunchKind::kAsks},
    LaunchKey{"slurm", "prologue", LaunchKind::kTexts},
    LaunchKey{"slurm", "container", LaunchKind::kContainer},
    LaunchKey{"slurm", "interface", LaunchKind::kText},
    LaunchKey{"slurm", "signal_seconds", LaunchKind::kReal},
    LaunchKey{"slurm", "idle_seconds", LaunchKind::kReal},
    LaunchKey{"slurm", "lease_seconds", LaunchKind::kSpan},
    LaunchKey{"slurm", "max_pending_minutes", LaunchKind::kReal},
    LaunchKey{"slurm", "poll_seconds", LaunchKind::kReal},
    LaunchKey{"slurm", "confirm_gpu_hours", LaunchKind::kReal},
    LaunchKey{"slurm", "max_nodes", LaunchKind::kCount},
    LaunchKey{"slurm", "max_allocations", LaunchKind::kCount},
    LaunchKey{"slurm", "allocation_nodes", LaunchKind::kCount},
    LaunchKey{"slurm", "spread_seconds", LaunchKind::kReal},
    LaunchKey{"slurm", "time", LaunchKind::kTime},
    LaunchKey{"slurm", "extra", LaunchKind::kTexts},
    LaunchKey{"slurm", "hardware", LaunchKind::kHardware},
};
// Of an item of launch.ssh.hosts that is more than a name.
struct HostKey {
  std::string_view key;
  LaunchKind kind;
};
inline constexpr std::array kHostKeys{
    HostKey{"host", LaunchKind::kText},           HostKey{"hardware", LaunchKind::kText},
    HostKey{"slots", LaunchKind::kCount},         HostKey{"memory_gib", LaunchKind::kReal},
    HostKey{"price_per_hour", LaunchKind::kReal}, HostKey{"interface", LaunchKind::kText},
    HostKey{"agent", LaunchKind::kText},          HostKey{"rank", LaunchKind::kText}};
inline constexpr std::array<std::string_view, 3> kLaunchers{"local", "ssh", "slurm"};
// Of launch.slurm.hardware.<catalogue name>: what to ask Slurm for to get it.
inline constexpr std::array<std::string_view, 8> kHardwareKeys{
    "partition", "account", "qos", "constraint", "reservation", "gres", "gpus_per_node", "mem"};
// Of launch.slurm.head: what the first node needs instead.
inline constexpr std::array<std::string_view, 4> kHeadKeys{"partition", "constraint", "mem", "gres"};
inline constexpr std::array<std::string_view, 3> kContainerKeys{"runtime", "image", "arguments"};
// Of a site profile: launchers with the same keys as in a grid, and limits.
inline constexpr std::array<std::string_view, 5> kSiteKeys{"local", "ssh", "slurm", "limits", "prices"};
inline constexpr std::array<std::string_view, 1> kSiteLimitKeys{"gpu_hours"};
// Of prices.<catalogue name>, in USD; one of them.
inline constexpr std::array<std::string_view, 2> kPriceKeys{"node_hour", "gpu_hour"};

}  // namespace sweep::grid
