// The section `launch`: settings of the launchers, each checked as its table says (schema/launch_settings.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/expected.h"
#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/read_sections.h"
#include "orchestrator/grid/read_values.h"

namespace sweep::grid {
namespace {

using Form = SettingCheck::Form;
constexpr double kShortestJob = 60;  // seconds

bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}

class LaunchReader {
 public:
  explicit LaunchReader(const Document& document) : document_(document) {}

  template <LaunchTable T>
  Status table(const Node& node, Place at, std::string_view what, T& out) const {
    SWEEP_TRY(need_map(document_, node, at, what));
    std::vector<std::string_view> known;
    std::string_view required;
    for_each_setting<T>([&](const LaunchKey& key, auto) {
      known.push_back(key.key);
      if (key.key == T::kRequired) required = key.sentence;
    });
    SWEEP_TRY(check_keys(document_, node, known, fmt::format("of {}", what)));
    Status status;
    for (const Entry& entry : node.entries)
      for_each_setting<T>([&](const LaunchKey& key, auto member) {
        if (!status || key.key != entry.key) return;
        auto& setting = out.*member;
        setting.stated = true;
        status = read(key, entry, setting.value);
      });
    if (status && !T::kRequired.empty() && node.find(T::kRequired) == nullptr)
      return document_.refuse(at, {ErrorKind::kMissing, T::kRequired}, "{} has no {}; add it: {}", what,
                              T::kRequired, required);
    return status;
  }

 private:
  Status read(const LaunchKey& key, const Entry& entry, i64& out) const {
    const auto [min, max] = std::pair(static_cast<i64>(key.check.min), static_cast<i64>(key.check.max));
    SWEEP_GET(out, read_int(document_, *entry.value, key.key, min, max));
    return {};
  }
  Status read(const LaunchKey& key, const Entry& entry, double& out) const {
    SWEEP_GET(out, read_real(document_, *entry.value, key.key, key.check.min, key.check.max));
    return {};
  }
  Status read(const LaunchKey& key, const Entry& entry, bool& out) const {
    SWEEP_GET(out, read_flag(document_, *entry.value, key.key));
    return {};
  }
  Status read(const LaunchKey& key, const Entry& entry, std::string& out) const {
    return text(key, *entry.value, out);
  }
  template <LaunchTable T>
  Status read(const LaunchKey& key, const Entry& entry, T& out) const {
    return table(*entry.value, entry.place, key.key, out);
  }
  // {h100-sxm-80gb: {partition: h100, constraint: ib}, ...}
  template <class T>
  Status read(const LaunchKey& key, const Entry& section, ByHardware<T>& out) const {
    SWEEP_TRY(need_map(document_, *section.value, section.place, key.key));
    for (const Entry& entry : section.value->entries) {
      SWEEP_TRY(check_hardware(entry.place, entry.key));
      SWEEP_TRY(table(*entry.value, entry.place, entry.key, out[entry.key]));
    }
    return {};
  }
  Status read(const LaunchKey& key, const Entry& entry, std::vector<std::string>& out) const {
    return list(key, *entry.value, out,
                [&](const Node& item, std::string& word) { return text(key, item, word); });
  }
  // [gpu1, {host: gpu2, slots: 8}]
  Status read(const LaunchKey& key, const Entry& entry, std::vector<SshHostSettings>& out) const {
    std::map<std::string, Place> seen;
    return list(key, *entry.value, out, [&](const Node& item, SshHostSettings& host) -> Status {
      if (item.is_map()) SWEEP_TRY(table(item, item.place, "a host", host));
      if (!item.is_map()) {
        host.host.stated = true;
        SWEEP_TRY(text(key, item, host.host.value));
      }
      return check_once(item.is_map() ? item.find("host")->place : item.place, *host.host, seen);
    });
  }

  template <class T, class F>
  Status list(const LaunchKey& key, const Node& node, std::vector<T>& out, F&& read_item) const {
    SWEEP_TRY(need_list(document_, node, key.key));
    for (const NodePtr& item : node.items) SWEEP_TRY(read_item(*item, out.emplace_back()));
    if (out.empty())
      return document_.refuse(node.place, {ErrorKind::kInvalidValue, key.key},
                              "{} is empty; fill it or remove it", key.key);
    return {};
  }

  Status text(const LaunchKey& key, const Node& node, std::string& out) const {
    SWEEP_GET(out, read_word(document_, node, key.key, key.check.longest));
    const auto& check = key.check;
    const auto bad = [&](std::string_view why) {
      return document_.refuse(node.place, {ErrorKind::kInvalidValue, key.key}, "{} {}", key.key, why);
    };
    switch (check.form) {
      case Form::kDirective:
        if (std::ranges::any_of(out, [](char c) { return is_control(c) || c == '"' || c == '\\'; }))
          return bad(
              "holds a quote, a backslash or a control character, which a directive of a batch script cannot "
              "carry; "
              "leave it out");
        break;
      case Form::kOption:
        SWEEP_TRY(option(key, node, out));
        [[fallthrough]];
      case Form::kLine:
        if (std::ranges::any_of(out, [](char c) { return is_control(c) && c != '\t'; }))
          return bad("holds a control character; each entry is one line of a script, so leave it out");
        break;
      case Form::kTimeLimit:
      case Form::kClock:
        if (const auto seconds = limit_seconds(out);
            !seconds || *seconds < kShortestJob ||
            (check.form == Form::kClock && std::ranges::count(out, ':') != 2))
          return bad(fmt::format(
              "is '{}'; write it as \"HH:MM:SS\" or \"D-HH:MM:SS\", minutes and seconds below 60, one "
              "minute at least",
              out));
        break;
      case Form::kWord:
        return word(key, node, out);
      case Form::kHardware:
        return check_hardware(node.place, out);
      case Form::kHost:
        return check_host(node.place, out);
      case Form::kHostPath:
        // A shell would fill in more; here only the home folder is filled in.
        if (out.starts_with('$') || (out.starts_with('~') && out != "~" && !out.starts_with("~/")))
          return bad(
              fmt::format("is '{}'; write ~/ for the home folder on the host, or the whole path", out));
        break;
      case Form::kAny:
      case Form::kText:
      case Form::kNumber:
        break;
    }
    return {};
  }

  Status word(const LaunchKey& key, const Node& node, const std::string& text) const {
    const auto known = given(key.check);
    if (std::ranges::find(known, text) != known.end()) return {};
    return document_.refuse(node.place, {ErrorKind::kInvalidValue, text}, "{} is '{}'; use one of {}",
                            key.key, text, fmt::join(known, ", "));
  }

  // Options that would keep a job from being found again, or from ending when its agent does, are refused. A batch system
  // takes the beginning of a long name for the name.
  Status option(const LaunchKey& key, const Node& node, const std::string& text) const {
    if (!text.starts_with(key.check.begins))
      return document_.refuse(node.place, {ErrorKind::kInvalidValue, text},
                              "'{}' in {} is no option: it does not begin with {}", text, key.key,
                              key.check.begins);
    const auto name = std::string_view(text).substr(0, text.find_first_of("= \t"));
    const auto taken = given(key.check);
    if (std::ranges::none_of(taken, [&](std::string_view each) { return each.starts_with(name); })) return {};
    return document_.refuse(node.place, {ErrorKind::kInvalidValue, name},
                            "{} cannot be in {}; leave it out. {} takes {}", name, key.key, key.key,
                            key.sentence);
  }

  static std::vector<std::string_view> given(const SettingCheck& check) {
    const auto end = std::ranges::find(check.words, std::string_view());
    return {check.words.begin(), end};
  }

  Status check_hardware(Place at, const std::string& name) const {
    const auto known = shape::find_hardware(name);
    return known ? Status() : document_.refuse(at, known.error());
  }

  // ssh would take it for an option, or for no name at all.
  Status check_host(Place at, const std::string& name) const {
    if (name[0] != '-' && name.find_first_of(" \t\r\n") == std::string::npos) return {};
    return document_.refuse(
        at, {ErrorKind::kInvalidValue, name},
        "'{}' is not the name of a host; write an alias, a name or an address, as ssh takes it", name);
  }

  // One host twice would serve two allocations at once.
  Status check_once(Place at, const std::string& name, std::map<std::string, Place>& seen) const {
    const auto [first, is_new] = seen.emplace(name, at);
    if (is_new) return {};
    return document_.refuse(at, {ErrorKind::kConflict, name},
                            "{} is named twice, first in line {}; for trials side by side on one host give "
                            "it slots: {{host: {}, slots: 2}}",
                            name, first->second.line, name);
  }

  const Document& document_;
};

}  // namespace

std::vector<std::string_view> launchers_and(std::span<const std::string_view> others) {
  std::vector<std::string_view> out;
  for_each_launcher([&](std::string_view name, auto) { out.push_back(name); });
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

Expected<LaunchSettings> read_launchers(const Document& document, const Node& map) {
  LaunchSettings out;
  for (const Entry& entry : map.entries) {
    Status status;
    for_each_launcher([&](std::string_view name, auto launcher) {
      if (entry.key != name) return;
      auto& settings = (out.*launcher).emplace();
      if (entry.value->kind != Node::Kind::kNull)  // `local:` alone has no settings
        status = LaunchReader(document).table(*entry.value, entry.place, entry.key, settings);
    });
    if (!status) return tl::unexpected(status.error());
  }
  return out;
}

Status read_launch(const Document& document, Grid& grid) {
  const Entry* entry = document.root().entry("launch");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_map(document, *entry->value, entry->place, "launch"));
  SWEEP_TRY(check_keys(document, *entry->value, launchers_and({}), "of launch"));
  SWEEP_GET(grid.launch, read_launchers(document, *entry->value));
  return {};
}

}  // namespace sweep::grid
