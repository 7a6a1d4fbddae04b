// The launchers and their settings: sections of `launch` in a grid file and of a site profile. Each launcher
// has its settings in its own folder, orchestrator/launch/<launcher>/launch_keys.def; the build puts these
// files together. The grid reader and the JSON Schema follow from them. After an edit:
// scripts/grid_schema.py. What each means: the launcher's document.
//
// LAUNCHER(name, directives, sentence)
//   directives: its texts become directives of a batch script, which cannot carry quotes and control characters.
// LAUNCH_KEY(table, key, kind, sentence)
//   table: the launcher, or a map among its settings. The lines of a table stand together.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace sweep {

enum class LaunchKind {
  kText,
  kPath,  // a longer text
  kCount,
  kReal,
  kSpan,  // seconds, one at least
  kPort,
  kFlag,
  kTexts,
  kTime,
  kScreen,
  kRuntime,
  kHosts,      // a list; of maps: table host
  kHardware,   // a map by catalogue name: table hardware
  kAsks,       // table head
  kContainer,  // table container
};

struct LaunchKey {
  std::string_view table, key;
  LaunchKind kind;
  std::string_view sentence;
};

inline constexpr LaunchKey kLaunchKeys[] = {
#define LAUNCH_KEY(table, key, kind, sentence) {#table, #key, LaunchKind::kind, sentence},
#include "schema/launch_keys.def"
#undef LAUNCH_KEY
};

// The keys of one table; empty: there is no such table.
constexpr std::span<const LaunchKey> launch_keys(std::string_view table) {
  const std::span<const LaunchKey> all = kLaunchKeys;
  std::size_t begin = 0;
  while (begin < all.size() && all[begin].table != table) ++begin;
  std::size_t end = begin;
  while (end < all.size() && all[end].table == table) ++end;
  return all.subspan(begin, end - begin);
}

// Null: the table has no such key.
constexpr const LaunchKey* find_launch_key(std::span<const LaunchKey> table, std::string_view key) {
  for (const LaunchKey& each : table)
    if (each.key == key) return &each;
  return nullptr;
}

#define LAUNCH_WORDS(kind, ...) inline constexpr std::string_view kWordsOf_##kind[] = {__VA_ARGS__};
#include "schema/launch_words.def"
#undef LAUNCH_WORDS

// The words that a setting of this kind takes; empty: any.
constexpr std::span<const std::string_view> launch_words(LaunchKind kind) {
#define LAUNCH_WORDS(of, ...) \
  if (kind == LaunchKind::of) return kWordsOf_##of;
#include "schema/launch_words.def"
#undef LAUNCH_WORDS
  return {};
}

struct LauncherKeys {
  std::string_view launcher;
  std::span<const LaunchKey> keys;
  // Its texts become directives of a batch script, which cannot carry quotes and control characters.
  bool directives = false;
};
inline constexpr LauncherKeys kLauncherKeys[] = {
#define LAUNCHER(name, directives, sentence) {#name, launch_keys(#name), directives},
#include "schema/launch_keys.def"
#undef LAUNCHER
};

// Null: there is no launcher of that name.
constexpr const LauncherKeys* find_launcher_keys(std::string_view launcher) {
  for (const auto& each : kLauncherKeys)
    if (each.launcher == launcher) return &each;
  return nullptr;
}

}  // namespace sweep
