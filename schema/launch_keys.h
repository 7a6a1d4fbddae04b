// Keys of a launcher's section, in `launch` of a grid file and in a site profile: one table for each launcher. The grid reader
// accepts these and no others, and the JSON Schema of grids is tested against them. What each means: docs of the launcher.
#pragma once
#include <array>
#include <span>
#include <string_view>

namespace sweep {

enum class LaunchKind {
  kText,
  kCount,
  kReal,
  kSpan,  // seconds, one at least
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
  std::string_view key;
  LaunchKind kind;
};

inline constexpr LaunchKey kLocalKeys[] = {
    {"slots", LaunchKind::kCount},
    {"screen", LaunchKind::kScreen},
};

inline constexpr LaunchKey kSshKeys[] = {
    {"hosts", LaunchKind::kHosts},        {"screen", LaunchKind::kScreen},
    {"user", LaunchKind::kText},          {"port", LaunchKind::kPort},
    {"interface", LaunchKind::kText},     {"directory", LaunchKind::kText},
    {"slots", LaunchKind::kCount},        {"agent", LaunchKind::kText},
    {"rank", LaunchKind::kText},          {"config", LaunchKind::kText},
    {"lease_seconds", LaunchKind::kSpan}, {"silence_seconds", LaunchKind::kSpan},
};

inline constexpr LaunchKey kSlurmKeys[] = {
    {"screen", LaunchKind::kScreen},
    {"partition", LaunchKind::kText},
    {"account", LaunchKind::kText},
    {"qos", LaunchKind::kText},
    {"constraint", LaunchKind::kText},
    {"reservation", LaunchKind::kText},
    {"nodelist", LaunchKind::kText},
    {"exclude", LaunchKind::kText},
    {"gres", LaunchKind::kText},
    {"licenses", LaunchKind::kText},
    {"switches", LaunchKind::kText},
    {"wckey", LaunchKind::kText},
    {"mem", LaunchKind::kText},
    {"gpus_per_node", LaunchKind::kText},
    {"cpus_per_task", LaunchKind::kCount},
    {"nice", LaunchKind::kCount},
    {"exclusive", LaunchKind::kFlag},
    {"colocate", LaunchKind::kFlag},
    {"slots", LaunchKind::kCount},
    {"head", LaunchKind::kAsks},
    {"prologue", LaunchKind::kTexts},
    {"container", LaunchKind::kContainer},
    {"interface", LaunchKind::kText},
    {"signal_seconds", LaunchKind::kReal},
    {"idle_seconds", LaunchKind::kReal},
    {"lease_seconds", LaunchKind::kSpan},
    {"max_pending_minutes", LaunchKind::kReal},
    {"poll_seconds", LaunchKind::kReal},
    {"confirm_gpu_hours", LaunchKind::kReal},
    {"max_nodes", LaunchKind::kCount},
    {"max_allocations", LaunchKind::kCount},
    {"allocation_nodes", LaunchKind::kCount},
    {"spread_seconds", LaunchKind::kReal},
    {"time", LaunchKind::kTime},
    {"extra", LaunchKind::kTexts},
    {"hardware", LaunchKind::kHardware},
};

inline constexpr LaunchKey kGridEngineKeys[] = {
    {"queue", LaunchKind::kText},
    {"project", LaunchKind::kText},
    {"parallel_environment", LaunchKind::kText},
    {"pe_slots", LaunchKind::kCount},
    {"resources", LaunchKind::kTexts},
    {"extra", LaunchKind::kTexts},
    {"prologue", LaunchKind::kTexts},
    {"screen", LaunchKind::kScreen},
    {"time", LaunchKind::kTime},
    {"signal_seconds", LaunchKind::kReal},
    {"idle_seconds", LaunchKind::kReal},
    {"max_pending_minutes", LaunchKind::kReal},
    {"poll_seconds", LaunchKind::kReal},
    {"confirm_gpu_hours", LaunchKind::kReal},
    {"max_nodes", LaunchKind::kCount},
    {"max_allocations", LaunchKind::kCount},
};
// Of an item of launch.ssh.hosts that is more than a name.
inline constexpr LaunchKey kHostKeys[] = {
    {"host", LaunchKind::kText},           {"hardware", LaunchKind::kText},
    {"slots", LaunchKind::kCount},         {"memory_gib", LaunchKind::kReal},
    {"price_per_hour", LaunchKind::kReal}, {"interface", LaunchKind::kText},
    {"agent", LaunchKind::kText},          {"rank", LaunchKind::kText},
};
// Of launch.slurm.hardware.<catalogue name>: what to ask Slurm for to get it.
inline constexpr std::array<std::string_view, 8> kHardwareKeys{
    "partition", "account", "qos", "constraint", "reservation", "gres", "gpus_per_node", "mem"};
// Of launch.slurm.head: what the first node needs instead.
inline constexpr std::array<std::string_view, 4> kHeadKeys{"partition", "constraint", "mem", "gres"};
inline constexpr std::array<std::string_view, 3> kContainerKeys{"runtime", "image", "arguments"};

struct LauncherKeys {
  std::string_view launcher;
  std::span<const LaunchKey> keys;
  // Its texts become directives of a batch script, which cannot carry quotes and control characters.
  bool directives = false;
};
inline constexpr LauncherKeys kLauncherKeys[] = {{"local", kLocalKeys},
                                                 {"ssh", kSshKeys},
                                                 {"slurm", kSlurmKeys, true},
                                                 {"gridengine", kGridEngineKeys, true}};

// Null: there is no launcher of that name.
constexpr const LauncherKeys* find_launcher_keys(std::string_view launcher) {
  for (const auto& each : kLauncherKeys)
    if (each.launcher == launcher) return &each;
  return nullptr;
}

}  // namespace sweep
