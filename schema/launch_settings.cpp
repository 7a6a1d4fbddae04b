#include "schema/launch_settings.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "schema/json_fields.h"

namespace sweep {
namespace {

using nlohmann::json;

template <class T>
struct IsByHardware : std::false_type {};
template <class T>
struct IsByHardware<ByHardware<T>> : std::true_type {};

template <class T>
json stated(const T& value) {
  if constexpr (LaunchTable<T>) {
    json out = json::object();
    for_each_setting<T>([&](const LaunchKey& key, auto member) {
      const auto& setting = value.*member;
      if (setting.stated) out[std::string(key.key)] = stated(*setting);
    });
    // A host of which only the name is stated is its name.
    return std::is_same_v<T, SshHostSettings> && out.size() == 1 ? out.front() : out;
  } else if constexpr (std::is_same_v<T, std::vector<SshHostSettings>>) {
    json out = json::array();
    for (const SshHostSettings& host : value) out.push_back(stated(host));
    return out;
  } else if constexpr (IsByHardware<T>::value) {
    json out = json::object();
    for (const auto& [name, table] : value) out[name] = stated(table);
    return out;
  } else {
    return value;
  }
}

tl::unexpected<Error> wrong(const json& j, const std::string& at) {
  return fail("{} has the wrong type: {}", at, dump(j).substr(0, 80));
}

// Null: it is not stated.
const json* member_of(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string place_in(const std::string& at, std::string_view key) {
  return fmt::format("{}.{}", at, key);
}

// at: what the value is, for an error.
template <class T>
Expected<void> read(const json& j, const std::string& at, T& out) {
  if constexpr (LaunchTable<T>) {
    if (std::is_same_v<T, SshHostSettings> && j.is_string()) return read(json{{"host", j}}, at, out);
    if (!j.is_object()) return wrong(j, at);
    Expected<void> status;
    for_each_setting<T>([&](const LaunchKey& key, auto member) {
      const json* found = status ? member_of(j, key.key) : nullptr;
      if (!found) return;
      auto& setting = out.*member;
      setting.stated = true;
      status = read(*found, place_in(at, key.key), setting.value);
    });
    return status;
  } else if constexpr (std::is_same_v<T, std::vector<SshHostSettings>>) {
    if (!j.is_array()) return wrong(j, at);
    for (const json& host : j) SWEEP_TRY(read(host, at, out.emplace_back()));
  } else if constexpr (IsByHardware<T>::value) {
    if (!j.is_object()) return wrong(j, at);
    for (const auto& [name, table] : j.items()) SWEEP_TRY(read(table, place_in(at, name), out[name]));
  } else if (!fields::Reader::read(j, out)) {
    return wrong(j, at);
  }
  return {};
}

template <class T>
void put_over(T& below, const T& above) {
  for_each_setting<T>([&](const LaunchKey&, auto member) {
    if ((above.*member).stated) below.*member = above.*member;
  });
}

}  // namespace

std::vector<std::string> launchers_in(const LaunchSettings& settings) {
  std::vector<std::string> out;
  for_each_launcher([&](std::string_view name, auto launcher) {
    if (settings.*launcher) out.emplace_back(name);
  });
  return out;
}

LaunchSettings merged(LaunchSettings below, const LaunchSettings& above) {
  for_each_launcher([&](std::string_view, auto launcher) {
    if (!(above.*launcher)) return;
    if (!(below.*launcher)) (below.*launcher).emplace();
    put_over(*(below.*launcher), *(above.*launcher));
  });
  return below;
}

nlohmann::json to_json(const LaunchSettings& settings) {
  json out = json::object();
  for_each_launcher([&](std::string_view name, auto launcher) {
    if (settings.*launcher) out[std::string(name)] = stated(*(settings.*launcher));
  });
  return out;
}

Expected<LaunchSettings> launch_settings_from(const nlohmann::json& j) {
  if (!j.is_object()) return fail("launch is no object: " + dump(j).substr(0, 80));
  LaunchSettings out;
  Expected<void> status;
  for_each_launcher([&](std::string_view name, auto launcher) {
    const auto found = j.find(name);
    if (!status || found == j.end()) return;
    status = read(*found, place_in("launch", name), (out.*launcher).emplace());
  });
  if (!status) return tl::unexpected(status.error());
  return out;
}

}  // namespace sweep
