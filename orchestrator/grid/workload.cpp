#include "orchestrator/grid/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/template.h"
#include "orchestrator/grid/read_values.h"
#include "schema/codec.h"

namespace sweep::grid {
namespace {

constexpr std::size_t kLongestText = 64u << 10;
constexpr std::size_t kMostAxes = 64;
constexpr std::array<std::string_view, 9> kKeys{
    "command", "env", "files", "folder", "processes", "spelling", "axes", "stop_after_steps", "log_patterns"};
constexpr std::array<std::string_view, 2> kAxisKeys{"type", "default"};
constexpr std::array<std::string_view, 1> kFileKeys{"from"};

const std::map<std::string_view, Type> kTypes{
    {"integer", Type::kInt}, {"number", Type::kReal}, {"flag", Type::kBool}, {"text", Type::kText}};

bool is_axis_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
         std::ranges::all_of(name, fits);
}

// Reads the section's parts; each refuses what is wrong with its place.
class WorkloadReader {
 public:
  WorkloadReader(const Document& document, const std::filesystem::path& folder)
      : document_(document), folder_(folder) {}

  Expected<CommandTemplates> read(const Entry& entry) {
    out_.place = entry.place;
    SWEEP_TRY(need_map(document_, *entry.value, entry.place, "workload"));
    SWEEP_TRY(check_keys(document_, *entry.value, kKeys, "of workload"));
    if (entry.value->find("command") == nullptr)
      return refuse(entry.place, "workload has no 'command'; list the program and its arguments");
    out_.command.folder = absolute(".");
    for (const Entry& part : entry.value->entries) SWEEP_TRY(read_part(part));
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> refuse(Place at, std::string_view message) const {
    return tl::unexpected(document_.error(at, message));
  }

  // Of a path relative to the grid file; no slash at the end.
  std::string absolute(const std::string& path) const {
    auto out = std::filesystem::absolute(folder_ / path).lexically_normal();
    return (out.has_filename() ? out : out.parent_path()).string();
  }

  Status read_part(const Entry& part) {
    if (part.key == "command") return command(*part.value);
    if (part.key == "env") return texts(part, out_.command.environment);
    if (part.key == "log_patterns") return texts(part, out_.command.log_patterns);
    if (part.key == "files") return files(part);
    if (part.key == "folder") return folder(*part.value);
    if (part.key == "processes") return processes(*part.value);
    if (part.key == "spelling") return spelling(part);
    if (part.key == "axes") return axes(part);
    const auto stop = read_flag(document_, *part.value, part.key);
    if (!stop) return tl::unexpected(stop.error());
    out_.command.stop_after_steps = *stop;
    return {};
  }

  // A word or a number as it is written; it may be empty.
  Expected<std::string> plain(const Node& node, std::string_view what) const {
    if (!node.is_scalar())
      return refuse(node.place, fmt::format("{} takes a text, not {}", what, node.kind_name()));
    if (node.text.size() > kLongestText)
      return refuse(node.place, fmt::format("{} is longer than {} bytes", what, kLongestText));
    return node.text;
  }

  // A template: text whose braces are right.
  Expected<std::string> template_text(const Node& node, std::string_view what) const {
    auto text = plain(node, what);
    if (!text) return text;
    if (const auto names = templates::names_in(*text); !names)
      return refuse(node.place, names.error().message);
    return text;
  }

  Status command(const Node& node) {
    SWEEP_TRY(need_list(document_, node, "command"));
    for (const NodePtr& item : node.items) {
      auto word = template_text(*item, "command");
      if (!word) return tl::unexpected(word.error());
      out_.command.argv.push_back(std::move(*word));
    }
    if (out_.command.argv.empty())
      return refuse(node.place, "command is empty; list the program and its arguments");
    return {};
  }

  Status texts(const Entry& part, std::map<std::string, std::string>& to) {
    SWEEP_TRY(need_map(document_, *part.value, part.place, part.key));
    for (const Entry& each : part.value->entries) {
      const bool pattern = part.key == "log_patterns";  // braces count repetitions there
      auto text = pattern ? plain(*each.value, each.key) : template_text(*each.value, each.key);
      if (!text) return tl::unexpected(text.error());
      to[each.key] = std::move(*text);
    }
    return {};
  }

  Status files(const Entry& part) {
    SWEEP_TRY(need_map(document_, *part.value, part.place, "files"));
    for (const Entry& each : part.value->entries) {
      if (const auto why = why_not_a_file(each.key); !why.empty()) return refuse(each.place, why);
      auto text = each.value->is_map() ? text_of_file(each) : template_text(*each.value, each.key);
      if (!text) return tl::unexpected(text.error());
      out_.command.files[each.key] = std::move(*text);
    }
    return {};
  }

  // {from: PATH}: a template beside the grid.
  Expected<std::string> text_of_file(const Entry& file) const {
    SWEEP_TRY(check_keys(document_, *file.value, kFileKeys, fmt::format("of {}", file.key)));
    const Node* from = file.value->find("from");
    if (from == nullptr) return refuse(file.place, fmt::format("{} has no 'from'", file.key));
    const auto path = read_word(document_, *from, "from", 4096);
    if (!path) return tl::unexpected(path.error());
    auto text = files::read(folder_ / *path, kLongestText);
    if (!text) return refuse(from->place, text.error().message);
    if (const auto names = templates::names_in(*text); !names)
      return refuse(from->place, fmt::format("{}: {}", *path, names.error().message));
    return text;
  }

  Status folder(const Node& node) {
    const auto path = read_word(document_, node, "folder", 4096);
    if (!path) return tl::unexpected(path.error());
    out_.command.folder = absolute(*path);
    return {};
  }

  Status processes(const Node& node) {
    const auto word = read_word(document_, node, "processes");
    if (!word) return tl::unexpected(word.error());
    if (*word != "per_rank" && *word != "per_node")
      return refuse(node.place, fmt::format("processes is per_rank or per_node, not '{}'", *word));
    out_.command.per_node = *word == "per_node";
    return {};
  }

  Status spelling(const Entry& part) {
    SWEEP_TRY(need_map(document_, *part.value, part.place, "spelling"));
    for (const Entry& axis : part.value->entries) {
      SWEEP_TRY(need_map(document_, *axis.value, axis.place, axis.key));
      for (const Entry& value : axis.value->entries) {
        auto text = plain(*value.value, value.key);
        if (!text) return tl::unexpected(text.error());
        out_.spelling[axis.key][value.key] = std::move(*text);
      }
    }
    return {};
  }

  Status axes(const Entry& part) {
    SWEEP_TRY(need_map(document_, *part.value, part.place, "axes"));
    if (part.value->entries.size() > kMostAxes)
      return refuse(part.place, fmt::format("at most {} axes can be declared", kMostAxes));
    for (const Entry& each : part.value->entries) SWEEP_TRY(axis(each));
    return {};
  }

  Status axis(const Entry& entry) {
    if (!is_axis_name(entry.key))
      return refuse(
          entry.place,
          fmt::format("'{}' cannot name an axis; take lower-case letters, digits and '_'", entry.key));
    SWEEP_TRY(need_map(document_, *entry.value, entry.place, entry.key));
    SWEEP_TRY(check_keys(document_, *entry.value, kAxisKeys, fmt::format("of {}", entry.key)));
    OwnAxis out;
    out.name = entry.key;
    out.place = entry.place;
    const Node* type = entry.value->find("type");
    if (type == nullptr)
      return refuse(entry.place, fmt::format("{} has no 'type': integer, number, flag or text", entry.key));
    const auto word = read_word(document_, *type, "type");
    if (!word) return tl::unexpected(word.error());
    const auto known = kTypes.find(*word);
    if (known == kTypes.end())
      return refuse(type->place, fmt::format("'{}' is not a type; use integer, number, flag or text", *word));
    out.type = known->second;
    const Entry* preset = entry.value->entry("default");
    if (preset == nullptr)
      return refuse(entry.place,
                    fmt::format("{} has no 'default': its value where the grid gives none", entry.key));
    out.preset = preset->value;
    out_.axes.push_back(std::move(out));
    return {};
  }

  const Document& document_;
  const std::filesystem::path& folder_;
  CommandTemplates out_;
};

// A value as a program reads it: words without quotes, numbers with all their digits.
std::string plain_text(Cell cell, Type type, const Words& words) {
  if (type == Type::kText) return words.at(cell.i);
  return type == Type::kReal ? fmt::format("{}", cell.r) : value_text(cell, type, words);
}

bool is_rank_name(std::string_view name) {
  return std::ranges::find(kRankNames, name) != kRankNames.end();
}

std::vector<std::string> template_names(const CommandSpec& command) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& text) {
    if (auto names = templates::names_in(text)) out.insert(out.end(), names->begin(), names->end());
  };
  for (const auto& word : command.argv) add(word);
  for (const auto& [name, value] : command.environment) add(value);
  for (const auto& [path, text] : command.files) add(text);
  return out;
}

}  // namespace

Expected<CommandTemplates> read_workload(const Document& document, const Entry& entry,
                                         const std::filesystem::path& folder) {
  return WorkloadReader(document, folder).read(entry);
}

Status CommandTemplates::bind(const Document& document, const Scope& scope, const MeasurePlan& measure) {
  const std::map<std::string_view, i64> steps{{"warmup_steps", measure.warmup_steps},
                                              {"steps", measure.steps},
                                              {"total_steps", measure.warmup_steps + measure.steps}};
  for (const std::string& name : template_names(command)) {
    if (const auto slot = scope.find(name)) {
      sources_[name].slot = slot;
    } else if (const auto number = steps.find(name); number != steps.end()) {
      sources_[name].text = std::to_string(number->second);
    } else if (!is_rank_name(name)) {
      auto known = scope.names();
      known.insert(known.end(), kRankNames.begin(), kRankNames.end());
      for (const auto& [each, value] : steps) known.emplace_back(each);
      return tl::unexpected(document.error(
          place, fmt::format("workload: {{{}}} is neither an axis nor a name that a command knows{}", name,
                             suggestion(name, known))));
    }
  }
  for (const auto& [axis, values] : spelling)
    if (!scope.find(axis))
      return tl::unexpected(document.error(
          place, fmt::format("spelling: '{}' is not an axis{}", axis, suggestion(axis, scope.axis_names()))));
  return {};
}

std::string CommandTemplates::render(const Scope& scope, const Point& point) const {
  const templates::ValueOf value_of = [&](std::string_view name) -> std::optional<std::string> {
    const auto source = sources_.find(name);
    if (source == sources_.end()) return std::nullopt;
    if (!source->second.slot) return source->second.text;
    const Slot slot = *source->second.slot;
    std::string value = point.held[slot] == Presence::kValue
                            ? plain_text(point.cells[slot], scope.at(slot).type, scope.words)
                            : "";
    const auto spelt = spelling.find(name);
    if (spelt == spelling.end()) return value;
    const auto other = spelt->second.find(value);
    return other == spelt->second.end() ? value : other->second;
  };
  const auto filled = [&](const std::string& text) { return templates::fill(text, value_of).value_or(text); };
  CommandSpec out = command;
  out.argv.clear();
  for (const std::string& word : command.argv) {
    std::string value = filled(word);
    if (!value.empty() || word.empty()) out.argv.push_back(std::move(value));
  }
  for (auto& [name, value] : out.environment) value = filled(value);
  for (auto& [path, text] : out.files) text = filled(text);
  for (const OwnAxis& axis : axes) {
    out.axes[axis.name] = plain_text(point.cells[axis.slot], axis.type, scope.words);
  }
  return dump(to_json(out));
}

}  // namespace sweep::grid
