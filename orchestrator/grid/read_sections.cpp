#include "orchestrator/grid/read_sections.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_values.h"
#include "schema/launch_keys.h"

namespace sweep::grid {
namespace {

constexpr i64 kMaxSteps = 1'000'000, kMaxRepeats = 1000, kMaxRetries = 100, kMaxCount = 1'000'000,
              kMaxPort = 65535;

using Json = nlohmann::json;

// Slurm's own forms of a time limit: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS (sbatch(1), --time).
bool is_slurm_time(const std::string& text) {
  static const std::regex forms(R"(\d{1,6}(:[0-5]\d){0,2}|\d{1,4}-([01]?\d|2[0-3])(:[0-5]\d){0,2})");
  return text.size() <= 20 && std::regex_match(text, forms);
}

Expected<Json> read_words(const Document& document, const Node& node, std::string_view what) {
  SWEEP_TRY(need_list(document, node, what));
  Json out = Json::array();
  for (const NodePtr& item : node.items) {
    const auto word = read_word(document, *item, what, 1024);
    if (!word) return tl::unexpected(word.error());
    out.push_back(*word);
  }
  if (out.empty())
    return tl::unexpected(document.error(node.place, fmt::format("{} is empty; fill it or remove it", what)));
  return out;
}

// A directive of a batch script is one line, and the quotes in it are sbatch's.
Status fits_a_directive(const Document& document, const Entry& entry, const std::string& word) {
  for (const unsigned char c : word)
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
      return tl::unexpected(
          document.error(entry.value->place,
                         fmt::format("{} holds a quote, a backslash or a control character, which a Slurm "
                                     "directive cannot carry; leave it out",
                                     entry.key)));
  return {};
}

// A map of texts with these keys.
Expected<Json> read_asks(const Document& document, const Node& node, Place at, std::string_view what,
                         std::span<const std::string_view> known) {
  SWEEP_TRY(need_map(document, node, at, what));
  SWEEP_TRY(check_keys(document, node, known, fmt::format("of {}", what)));
  Json out = Json::object();
  for (const Entry& ask : node.entries) {
    const auto word = read_word(document, *ask.value, ask.key, 1024);
    if (!word) return tl::unexpected(word.error());
    SWEEP_TRY(fits_a_directive(document, ask, *word));
    out[ask.key] = *word;
  }
  return out;
}

// hardware: {h100-sxm-80gb: {partition: h100, constraint: ib}, ...}
Expected<Json> read_hardware(const Document& document, const Node& node, Place at) {
  SWEEP_TRY(need_map(document, node, at, "hardware"));
  Json out = Json::object();
  for (const Entry& entry : node.entries) {
    if (const auto known = shape::find_hardware(entry.key); !known)
      return tl::unexpected(document.error(entry.place, known.error().message));
    auto asks = read_asks(document, *entry.value, entry.place, entry.key, kHardwareKeys);
    if (!asks) return asks;
    out[entry.key] = std::move(*asks);
  }
  return out;
}

// container: {runtime: apptainer, image: /images/torch.sif, arguments: [--nv]}
Expected<Json> read_container(const Document& document, const Node& node, Place at) {
  SWEEP_TRY(need_map(document, node, at, "container"));
  SWEEP_TRY(check_keys(document, node, kContainerKeys, "of container"));
  Json out = Json::object();
  for (const Entry& entry : node.entries) {
    if (entry.key == "arguments") {
      auto words = read_words(document, *entry.value, entry.key);
      if (!words) return words;
      out[entry.key] = std::move(*words);
      continue;
    }
    const auto word = read_word(document, *entry.value, entry.key, 4096);
    if (!word) return tl::unexpected(word.error());
    out[entry.key] = *word;
  }
  if (!out.contains("image"))
    return tl::unexpected(
        document.error(at, "container has no image; name the file or address it starts from"));
  return out;
}

Expected<Json> read_hosts(const Document& document, const Node& node);

template <class T>
Expected<Json> as_json(const Expected<T>& read) {
  return read.map([](const T& value) { return Json(value); });
}

Expected<Json> read_launch_value(const Document& document, const Entry& entry, LaunchKind kind) {
  switch (kind) {
    case LaunchKind::kHosts:
      return read_hosts(document, *entry.value);
    case LaunchKind::kCount:
      return as_json(read_int(document, *entry.value, entry.key, 1, kMaxCount));
    case LaunchKind::kPort:
      return as_json(read_int(document, *entry.value, entry.key, 1, kMaxPort));
    case LaunchKind::kTexts:
      return read_words(document, *entry.value, entry.key);
    case LaunchKind::kReal:
      return as_json(read_real(document, *entry.value, entry.key, 0, 1e9));
    case LaunchKind::kSpan:
      return as_json(read_real(document, *entry.value, entry.key, 1, 1e9));
    case LaunchKind::kFlag:
      return as_json(read_flag(document, *entry.value, entry.key));
    case LaunchKind::kHardware:
      return read_hardware(document, *entry.value, entry.place);
    case LaunchKind::kAsks:
      return read_asks(document, *entry.value, entry.place, entry.key, kHeadKeys);
    case LaunchKind::kContainer:
      return read_container(document, *entry.value, entry.place);
    case LaunchKind::kText:
    case LaunchKind::kTime:
    case LaunchKind::kScreen:
      break;
  }
  const auto word = read_word(document, *entry.value, entry.key, 1024);
  if (!word) return tl::unexpected(word.error());
  if (kind == LaunchKind::kTime && !is_slurm_time(*word)) {
    return tl::unexpected(document.error(
        entry.value->place,
        fmt::format("time is '{}'; write it as \"HH:MM:SS\" or \"D-HH:MM:SS\", minutes and seconds below 60",
                    *word)));
  }
  if (kind == LaunchKind::kScreen && *word != "show" && *word != "leave_out") {
    return tl::unexpected(document.error(
        entry.value->place,
        fmt::format(
            "screen is '{}'; say show (nodes that stand out are shown) or leave_out (they get no work)",
            *word)));
  }
  return Json(*word);
}

// {host: gpu1, hardware: h100-sxm-80gb, slots: 8, ...}
Expected<Json> read_host(const Document& document, const Node& item) {
  std::vector<std::string_view> known;
  for (const LaunchKey& key : kHostKeys) known.push_back(key.key);
  SWEEP_TRY(check_keys(document, item, known, "of a host"));
  Json out = Json::object();
  for (const Entry& entry : item.entries)
    for (const LaunchKey& key : kHostKeys) {
      if (key.key != entry.key) continue;
      auto value = read_launch_value(document, entry, key.kind);
      if (!value) return value;
      out[entry.key] = std::move(*value);
    }
  if (!out.contains("host"))
    return tl::unexpected(document.error(item.place, "a host needs its name: {host: NAME}"));
  if (!out.contains("hardware")) return out;
  if (const auto hardware = shape::find_hardware(out["hardware"].get<std::string>()); !hardware)
    return tl::unexpected(document.error(item.find("hardware")->place, hardware.error().message));
  return out;
}

// What ssh would take for an option, or for no name at all; and one host twice would serve two allocations at once.
Status check_host_name(const Document& document, const Node& node, const std::string& name,
                       std::map<std::string, Place>& seen) {
  if (name[0] == '-' || name.find_first_of(" \t\r\n") != std::string::npos)
    return tl::unexpected(document.error(
        node.place,
        fmt::format("'{}' is no name of a host; write it as ssh takes it: an alias, a name, an address",
                    name)));
  const auto [first, is_new] = seen.emplace(name, node.place);
  if (is_new) return {};
  return tl::unexpected(document.error(
      node.place,
      fmt::format("{} is named twice, first in line {}; trials side by side on one host are slots: "
                  "{{host: {}, slots: 2}}",
                  name, first->second.line, name)));
}

// hosts: [gpu1, {host: gpu2, slots: 8}]
Expected<Json> read_hosts(const Document& document, const Node& node) {
  SWEEP_TRY(need_list(document, node, "hosts"));
  Json out = Json::array();
  std::map<std::string, Place> seen;
  for (const NodePtr& item : node.items) {
    Expected<Json> host;
    if (item->kind == Node::Kind::kMap)
      host = read_host(document, *item);
    else
      host =
          read_word(document, *item, "hosts", 1024).map([](const std::string& name) { return Json(name); });
    if (!host) return host;
    const bool alone = host->is_string();
    SWEEP_TRY(check_host_name(document, alone ? *item : *item->find("host"),
                              (alone ? *host : (*host)["host"]).get<std::string>(), seen));
    out.push_back(std::move(*host));
  }
  if (out.empty()) return tl::unexpected(document.error(node.place, "hosts is empty; name at least one"));
  return out;
}

Expected<Json> read_launcher(const Document& document, const Entry& launcher, const LauncherKeys& table) {
  Json out = Json::object();
  if (launcher.value->kind == Node::Kind::kNull) return out;  // `local:` alone
  SWEEP_TRY(need_map(document, *launcher.value, launcher.place, launcher.key));
  std::vector<std::string_view> known;
  for (const LaunchKey& key : table.keys) known.push_back(key.key);
  SWEEP_TRY(check_keys(document, *launcher.value, known, fmt::format("of {}", launcher.key)));
  for (const Entry& entry : launcher.value->entries) {
    for (const LaunchKey& key : table.keys) {
      if (key.key != entry.key) continue;
      auto value = read_launch_value(document, entry, key.kind);
      if (!value) return tl::unexpected(value.error());
      if (table.directives && value->is_string())
        SWEEP_TRY(fits_a_directive(document, entry, value->get<std::string>()));
      out[entry.key] = std::move(*value);
    }
  }
  return out;
}

// Sets `to` from a key that may be absent.
Status optional_int(const Document& document, const Node& map, std::string_view key, i64 min, i64 max,
                    i64& to) {
  const Node* node = map.find(key);
  if (node == nullptr) return {};
  const auto value = read_int(document, *node, key, min, max);
  if (!value) return tl::unexpected(value.error());
  to = *value;
  return {};
}

}  // namespace

Status read_measure(const Document& document, Grid& grid) {
  SWEEP_TRY(optional_int(document, document.root(), "repeats", 1, kMaxRepeats, grid.measure.repeats));
  const Entry* entry = document.root().entry("measure");
  if (entry == nullptr) return {};
  const Node& map = *entry->value;
  SWEEP_TRY(need_map(document, map, entry->place, "measure"));
  SWEEP_TRY(check_keys(document, map, kMeasureKeys, "of measure"));
  if (const Node* twice = map.find("repeats");
      twice != nullptr && document.root().entry("repeats") != nullptr) {
    return tl::unexpected(
        document.error(twice->place, "repeats is also given at the top of the file; keep one of them"));
  }
  SWEEP_TRY(optional_int(document, map, "warmup_steps", 0, kMaxSteps, grid.measure.warmup_steps));
  SWEEP_TRY(optional_int(document, map, "steps", 1, kMaxSteps, grid.measure.steps));
  return optional_int(document, map, "repeats", 1, kMaxRepeats, grid.measure.repeats);
}

// Absent and `auto` leave it to the prediction.
Status seconds_or_auto(const Document& document, const Node& map, std::string_view key,
                       std::optional<double>& out) {
  const Node* node = map.find(key);
  if (node == nullptr || (node->is_scalar() && node->text == "auto")) return {};
  const auto seconds = read_real(document, *node, key, 1e-3, 1e7);
  if (!seconds) return tl::unexpected(Error{seconds.error().message + ", or auto"});
  out = *seconds;
  return {};
}

Status read_limits(const Document& document, Grid& grid) {
  const Entry* entry = document.root().entry("limits");
  if (entry == nullptr) return {};
  const Node& map = *entry->value;
  SWEEP_TRY(need_map(document, map, entry->place, "limits"));
  SWEEP_TRY(check_keys(document, map, kLimitKeys, "of limits"));
  if (const Node* node = map.find("gpu_hours")) {
    const auto hours = read_real(document, *node, "gpu_hours", 1e-6, 1e9);
    if (!hours) return tl::unexpected(hours.error());
    grid.limits.gpu_hours = *hours;
  }
  if (const Node* node = map.find("memory_margin_percent")) {
    const auto percent = read_real(document, *node, "memory_margin_percent", 0, 1e4);
    if (!percent) return tl::unexpected(percent.error());
    grid.limits.memory_margin = *percent / 100;
  }
  SWEEP_TRY(seconds_or_auto(document, map, "trial_seconds", grid.limits.trial_seconds));
  SWEEP_TRY(seconds_or_auto(document, map, "hang_seconds", grid.limits.hang_seconds));
  SWEEP_TRY(optional_int(document, map, "retries_crash", 0, kMaxRetries, grid.limits.retries_crash));
  return optional_int(document, map, "retries_infra", 0, kMaxRetries, grid.limits.retries_infra);
}

std::vector<std::string_view> launchers_and(std::span<const std::string_view> others) {
  std::vector<std::string_view> out;
  for (const LauncherKeys& table : kLauncherKeys) out.push_back(table.launcher);
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

Expected<Json> read_launchers(const Document& document, const Node& map) {
  Json out = Json::object();
  for (const Entry& launcher : map.entries) {
    const LauncherKeys* table = find_launcher_keys(launcher.key);
    if (table == nullptr) continue;
    auto value = read_launcher(document, launcher, *table);
    if (!value) return tl::unexpected(value.error());
    out[launcher.key] = std::move(*value);
  }
  return out;
}

Status read_launch(const Document& document, Grid& grid) {
  const Entry* entry = document.root().entry("launch");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_map(document, *entry->value, entry->place, "launch"));
  SWEEP_TRY(check_keys(document, *entry->value, launchers_and({}), "of launch"));
  const auto out = read_launchers(document, *entry->value);
  if (!out) return tl::unexpected(out.error());
  grid.launch = out->dump();
  return {};
}

}  // namespace sweep::grid
