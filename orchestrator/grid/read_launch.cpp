// The section `launch`: settings of the launchers, each checked by its kind (schema/launch_keys.h), as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/read_sections.h"
#include "orchestrator/grid/read_values.h"
#include "schema/launch_keys.h"

namespace sweep::grid {
namespace {

using Json = nlohmann::json;

constexpr i64 kMaxCount = 1'000'000, kMaxPort = 65535;
constexpr std::size_t kMaxText = 1024, kMaxPathText = 4096;

// Slurm's own forms of a time limit: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS (sbatch(1), --time).
bool is_slurm_time(const std::string& text) {
  static const std::regex forms(R"(\d{1,6}(:[0-5]\d){0,2}|\d{1,4}-([01]?\d|2[0-3])(:[0-5]\d){0,2})");
  return text.size() <= 20 && std::regex_match(text, forms);
}

// A directive of a batch script is one line, and the quotes in it are the scheduler's.
bool fits_a_directive(const std::string& text) {
  return std::ranges::none_of(text,
                              [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '"' || c == '\\'; });
}

class LaunchReader {
 public:
  explicit LaunchReader(const Document& document) : document_(document) {}

  // The settings of a map by the keys of a table. directives: its texts must fit one.
  Expected<Json> table(const Node& node, Place at, std::string_view what, std::span<const LaunchKey> keys,
                       bool directives) const {
    SWEEP_TRY(need_map(document_, node, at, what));
    std::vector<std::string_view> known;
    for (const LaunchKey& key : keys) known.push_back(key.key);
    SWEEP_TRY(check_keys(document_, node, known, fmt::format("of {}", what)));
    Json out = Json::object();
    for (const Entry& entry : node.entries) {
      auto read = value(entry, find_launch_key(keys, entry.key)->kind);
      if (!read) return read;
      if (directives && read->is_string() && !fits_a_directive(read->get<std::string>()))
        return refuse(entry.value->place, {ErrorKind::kInvalidValue, entry.key},
                      fmt::format("{} holds a quote, a backslash or a control character, which a directive "
                                  "of a batch script cannot carry; leave it out",
                                  entry.key));
      out[entry.key] = std::move(*read);
    }
    return out;
  }

 private:
  tl::unexpected<Error> refuse(Place at, Fault fault, std::string_view message) const {
    return tl::unexpected(document_.error(at, fault, message));
  }

  template <class T>
  static Expected<Json> as_json(const Expected<T>& read) {
    return read.map([](const T& value) { return Json(value); });
  }

  Expected<Json> value(const Entry& entry, LaunchKind kind) const {
    const Node& node = *entry.value;
    switch (kind) {
      case LaunchKind::kCount:
        return as_json(read_int(document_, node, entry.key, 1, kMaxCount));
      case LaunchKind::kPort:
        return as_json(read_int(document_, node, entry.key, 1, kMaxPort));
      case LaunchKind::kReal:
        return as_json(read_real(document_, node, entry.key, 0, 1e9));
      case LaunchKind::kSpan:
        return as_json(read_real(document_, node, entry.key, 1, 1e9));
      case LaunchKind::kFlag:
        return as_json(read_flag(document_, node, entry.key));
      case LaunchKind::kTexts:
        return texts(node, entry.key);
      case LaunchKind::kHosts:
        return hosts(node);
      case LaunchKind::kHardware:
        return hardware(entry);
      case LaunchKind::kAsks:
        return table(node, entry.place, entry.key, launch_keys("head"), true);
      case LaunchKind::kContainer:
        return container(entry);
      case LaunchKind::kPath:
        return as_json(read_word(document_, node, entry.key, kMaxPathText));
      case LaunchKind::kText:
      case LaunchKind::kTime:
      case LaunchKind::kScreen:
      case LaunchKind::kRuntime:
        break;
    }
    return text(entry, kind);
  }

  Expected<Json> text(const Entry& entry, LaunchKind kind) const {
    const auto word = read_word(document_, *entry.value, entry.key, kMaxText);
    if (!word) return tl::unexpected(word.error());
    if (kind == LaunchKind::kTime && !is_slurm_time(*word))
      return refuse(
          entry.value->place, {ErrorKind::kInvalidValue, "time"},
          fmt::format(
              "time is '{}'; write it as \"HH:MM:SS\" or \"D-HH:MM:SS\", minutes and seconds below 60",
              *word));
    const auto words = launch_words(kind);
    if (!words.empty() && std::ranges::find(words, *word) == words.end())
      return refuse(entry.value->place, {ErrorKind::kInvalidValue, *word},
                    fmt::format("{} is '{}'; use one of {}", entry.key, *word, fmt::join(words, ", ")));
    return Json(*word);
  }

  Expected<Json> texts(const Node& node, std::string_view what) const {
    SWEEP_TRY(need_list(document_, node, what));
    Json out = Json::array();
    for (const NodePtr& item : node.items) {
      const auto word = read_word(document_, *item, what, kMaxText);
      if (!word) return tl::unexpected(word.error());
      out.push_back(*word);
    }
    if (out.empty())
      return refuse(node.place, {ErrorKind::kInvalidValue, what},
                    fmt::format("{} is empty; fill it or remove it", what));
    return out;
  }

  // hardware: {h100-sxm-80gb: {partition: h100, constraint: ib}, ...}
  Expected<Json> hardware(const Entry& section) const {
    SWEEP_TRY(need_map(document_, *section.value, section.place, section.key));
    Json out = Json::object();
    for (const Entry& entry : section.value->entries) {
      if (const auto known = shape::find_hardware(entry.key); !known)
        return refuse(entry.place, known.error(), known.error().message);
      auto asks = table(*entry.value, entry.place, entry.key, launch_keys("hardware"), true);
      if (!asks) return asks;
      out[entry.key] = std::move(*asks);
    }
    return out;
  }

  // container: {runtime: apptainer, image: /images/torch.sif, arguments: [--nv]}
  Expected<Json> container(const Entry& entry) const {
    auto out = table(*entry.value, entry.place, entry.key, launch_keys("container"), false);
    if (out && !out->contains("image"))
      return refuse(entry.place, {ErrorKind::kMissing, "image"},
                    "container has no image; name the file or address it starts from");
    return out;
  }

  // hosts: [gpu1, {host: gpu2, slots: 8}]
  Expected<Json> hosts(const Node& node) const {
    SWEEP_TRY(need_list(document_, node, "hosts"));
    Json out = Json::array();
    std::map<std::string, Place> seen;
    for (const NodePtr& item : node.items) {
      auto host =
          item->is_map() ? this->host(*item) : as_json(read_word(document_, *item, "hosts", kMaxText));
      if (!host) return host;
      const bool alone = host->is_string();
      SWEEP_TRY(check_host_name(alone ? *item : *item->find("host"),
                                (alone ? *host : (*host)["host"]).get<std::string>(), seen));
      out.push_back(std::move(*host));
    }
    if (out.empty())
      return refuse(node.place, {ErrorKind::kInvalidValue, "hosts"}, "hosts is empty; name at least one");
    return out;
  }

  // {host: gpu1, hardware: h100-sxm-80gb, slots: 8, ...}
  Expected<Json> host(const Node& item) const {
    auto out = table(item, item.place, "a host", launch_keys("host"), false);
    if (!out) return out;
    if (!out->contains("host"))
      return refuse(item.place, {ErrorKind::kMissing, "host"}, "a host needs its name: {host: NAME}");
    if (!out->contains("hardware")) return out;
    if (const auto known = shape::find_hardware((*out)["hardware"].get<std::string>()); !known)
      return refuse(item.find("hardware")->place, known.error(), known.error().message);
    return out;
  }

  // ssh would take it for an option or for no name at all; and one host twice would serve two allocations at
  // once.
  Status check_host_name(const Node& node, const std::string& name,
                         std::map<std::string, Place>& seen) const {
    if (name[0] == '-' || name.find_first_of(" \t\r\n") != std::string::npos)
      return refuse(
          node.place, {ErrorKind::kInvalidValue, name},
          fmt::format("'{}' is not the name of a host; write an alias, a name or an address, as ssh "
                      "takes it",
                      name));
    const auto [first, is_new] = seen.emplace(name, node.place);
    if (is_new) return {};
    return refuse(node.place, {ErrorKind::kConflict, name},
                  fmt::format("{} is named twice, first in line {}; for trials side by side on one host "
                              "give it slots: {{host: {}, slots: 2}}",
                              name, first->second.line, name));
  }

  const Document& document_;
};

}  // namespace

std::vector<std::string_view> launchers_and(std::span<const std::string_view> others) {
  std::vector<std::string_view> out;
  for (const LauncherKeys& table : kLauncherKeys) out.push_back(table.launcher);
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

Expected<Json> read_launchers(const Document& document, const Node& map) {
  Json out = Json::object();
  for (const Entry& launcher : map.entries) {
    const LauncherKeys* known = find_launcher_keys(launcher.key);
    if (known == nullptr) continue;
    const bool no_settings = launcher.value->kind == Node::Kind::kNull;  // `local:` alone
    auto settings = no_settings ? Expected<Json>(Json::object())
                                : LaunchReader(document).table(*launcher.value, launcher.place, launcher.key,
                                                               known->keys, known->directives);
    if (!settings) return settings;
    out[launcher.key] = std::move(*settings);
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
