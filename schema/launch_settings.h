// The settings of the launchers: the section `launch` of a grid file and what a site profile says. Each launcher has its
// settings in its own folder, orchestrator/launch/<launcher>/launch_keys.def, one line each; the build puts these files
// together. Structs, defaults, the reader of grids and profiles, JSON, the JSON Schema and the tables of the documents
// follow from them. After an edit: scripts/grid_schema.py.
//
// LAUNCHER(Struct, name, sentence)                the section `name` of `launch`
// LAUNCH_TABLE(Struct, name, required, sentence)  a map among the settings of a launcher, before the launcher;
//   required: the key that must be stated; "": none
// LAUNCH_KEY(type, key, default, check, option, sentence)   a setting of the table that was begun
//   check: what values are taken (setting_check). option: the option of the batch system that takes the value; "": none
//   sentence: what the setting does; "; absent: ..." says what holds instead of the default
// LAUNCH_END(Struct)
#pragma once
#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep {

// A setting: the value that files state, else the default.
template <class T>
struct Setting {
  T value{};
  bool stated = false;

  Setting& operator=(T other) {
    value = std::move(other), stated = true;
    return *this;
  }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
  std::optional<T> if_stated() const { return stated ? std::optional<T>(value) : std::nullopt; }
  bool operator==(const Setting&) const = default;
};

// Settings by the catalogue name of the hardware.
template <class T>
using ByHardware = std::map<std::string, T>;

// The values that a setting takes.
struct SettingCheck {
  enum class Form {
    kAny,
    kText,
    kDirective,  // fits a directive of a batch script: no quote, backslash or control character
    kLine,       // one line of a script
    kOption,     // an option of the batch system, and none of `words`
    kWord,       // one of `words`
    kTimeLimit,  // a time limit, in the form of limit_seconds
    kClock,      // the same with hours, minutes and seconds
    kHardware,   // a catalogue name
    kHost,       // a name as ssh takes it
    kHostPath,   // a path on hosts that ssh reaches
    kNumber,     // a number from min to max, both included
  };
  Form form = Form::kAny;
  double min = 0, max = 0;
  std::size_t longest = 1024;  // bytes of a text
  std::string_view begins = {};
  std::array<std::string_view, 12> words = {};  // empty ones at the end
};

namespace setting_check {
using Form = SettingCheck::Form;
constexpr SettingCheck any() {
  return {};
}
constexpr SettingCheck any_text(std::size_t longest = 1024) {
  return {.form = Form::kText, .longest = longest};
}
constexpr SettingCheck directive() {
  return {.form = Form::kDirective};
}
constexpr SettingCheck line() {
  return {.form = Form::kLine};
}
constexpr SettingCheck time_limit() {
  return {.form = Form::kTimeLimit};
}
constexpr SettingCheck clock_limit() {
  return {.form = Form::kClock};
}
constexpr SettingCheck hardware_name() {
  return {.form = Form::kHardware};
}
constexpr SettingCheck host_name() {
  return {.form = Form::kHost};
}
constexpr SettingCheck host_path() {
  return {.form = Form::kHostPath};
}
constexpr SettingCheck range(double min, double max) {
  return {.form = Form::kNumber, .min = min, .max = max};
}
constexpr SettingCheck count() {
  return range(1, 1'000'000);
}
constexpr SettingCheck real() {
  return range(0, 1e9);
}
constexpr SettingCheck span() {  // seconds
  return range(1, 1e9);
}
template <class... Words>
constexpr SettingCheck words(Words... known) {
  return {.form = Form::kWord, .words = {known...}};
}
// begins: what an option begins with. taken: options that sweep sets itself.
template <class... Words>
constexpr SettingCheck option(std::string_view begins, Words... taken) {
  return {.form = Form::kOption, .begins = begins, .words = {taken...}};
}
}  // namespace setting_check

struct LaunchKey {
  std::string_view key;
  SettingCheck check;
  std::string_view option, sentence;
};

// One struct for each table.
#define LAUNCH_TABLE(Struct, name, required, sentence) \
  struct Struct {                                      \
    static constexpr std::string_view kTable = #name, kRequired = required;
#define LAUNCHER(Struct, name, sentence) LAUNCH_TABLE(Struct, name, "", sentence)
#define LAUNCH_KEY(type, key, default, check, option, sentence) \
  Setting<type> key{.value = default};  // NOLINT(bugprone-macro-parentheses)
#define LAUNCH_END(Struct)                        \
  bool operator==(const Struct&) const = default; \
  }                                               \
  ;
#include "schema/launch_keys.def"
#undef LAUNCH_TABLE
#undef LAUNCHER
#undef LAUNCH_KEY
#undef LAUNCH_END

template <class T>
concept LaunchTable = requires {
  T::kTable;
};

template <LaunchTable T>
struct LaunchKeysOf;
#define LAUNCH_TABLE(Struct, name, required, sentence) \
  template <>                                          \
  struct LaunchKeysOf<Struct> {                        \
    using Table = Struct;                              \
    template <class F>                                 \
    static void for_each(F&& f) {                      \
      using namespace setting_check;
#define LAUNCHER(Struct, name, sentence) LAUNCH_TABLE(Struct, name, "", sentence)
#define LAUNCH_KEY(type, key, default, check, option, sentence)           \
  {                                                                       \
    static constexpr LaunchKey launch_key{#key, check, option, sentence}; \
    f(launch_key, &Table::key);                                           \
  }
#define LAUNCH_END(Struct) \
  }                        \
  }                        \
  ;
#include "schema/launch_keys.def"
#undef LAUNCH_TABLE
#undef LAUNCHER
#undef LAUNCH_KEY
#undef LAUNCH_END

// Calls f(LaunchKey, Setting<...> T::*) for each setting of a table.
template <LaunchTable T, class F>
void for_each_setting(F&& f) {
  LaunchKeysOf<T>::for_each(f);
}

// The launchers that a grid, the site profiles, or both together name. nullopt: none is named.
struct LaunchSettings {
#define LAUNCH_TABLE(...)
#define LAUNCHER(Struct, name, sentence) std::optional<Struct> name;
#define LAUNCH_KEY(...)
#define LAUNCH_END(...)
#include "schema/launch_keys.def"
#undef LAUNCHER
  bool operator==(const LaunchSettings&) const = default;
};

// Calls f(name, std::optional<...> LaunchSettings::*) for each launcher.
template <class F>
void for_each_launcher(F&& f) {
#define LAUNCHER(Struct, name, sentence) f(std::string_view(#name), &LaunchSettings::name);
#include "schema/launch_keys.def"
#undef LAUNCH_TABLE
#undef LAUNCHER
#undef LAUNCH_KEY
#undef LAUNCH_END
}

// The launchers that are named.
std::vector<std::string> launchers_in(const LaunchSettings&);
// Joins two lists, setting by setting: a value stated in `above` goes before one stated in `below`.
LaunchSettings merged(LaunchSettings below, const LaunchSettings& above);

// The stated settings as an object of the launchers. Reading refuses wrong types, and no more: the reader of
// grids and profiles has checked the values before they were written. Unknown keys are ignored.
nlohmann::json to_json(const LaunchSettings&);
Expected<LaunchSettings> launch_settings_from(const nlohmann::json&);

}  // namespace sweep
