#include "orchestrator/interop/first_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fail.h"
#include "base/files.h"
#include "base/input_file.h"
#include "base/number_in.h"
#include "base/utf8.h"
#include "orchestrator/grid/config_text.h"
#include "orchestrator/grid/own_axes.h"
#include "orchestrator/grid/workload_text.h"
#include "orchestrator/interop/draft.h"
#include "orchestrator/interop/known_options.h"
#include "orchestrator/interop/recipes.h"
#include "schema/command_spec.h"

namespace sweep::interop {
namespace {

constexpr std::size_t kMostBytes = 1u << 20;

std::string program_name(const std::string& word) {
  return std::filesystem::path(word).filename().string();
}

std::string grid_name(const std::string& from) {
  std::string out;
  for (const char c : std::filesystem::path(from).stem().string())
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return out.empty() || std::isalnum(static_cast<unsigned char>(out[0])) == 0 ? "my-trainer"
                                                                              : out.substr(0, 60);
}

// A program that is told no number of steps would train to its end in every trial.
std::string finished(Draft& draft) {
  if (!draft.stops)
    draft.more =
        "  stop_after_steps: true   # none of its options is a number of steps that is known: it is ended "
        "after those of a trial\n";
  return draft.text();
}

// The place of the script among torchrun's words: after torchrun's own options.
std::optional<std::size_t> script_of_torchrun(std::span<const std::string> words, Draft& draft) {
  std::vector<std::string> ignored;  // the recipe writes torchrun's options itself
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i])) return i;
    const auto name = axis_name_from(words[i].substr(0, words[i].find('=')));
    if (words[i] == "-m" || name == "module" || name == "no_python") return std::nullopt;
    if (name == "standalone") continue;
    const bool joined = words[i].find('=') != std::string::npos;
    const auto option = words.subspan(i, std::min<std::size_t>(joined ? 1 : 2, words.size() - i));
    add_words(draft, option, ignored, Whose::kLauncher);
    if (!rank_name_of_option(name))
      for (const std::string& word : option) draft.left_out += " " + safe_text(word);
    i += option.size() - 1;
  }
  return std::nullopt;
}

// Settings of a recipe that are an axis as it stands: flag or path -> axis.
std::map<std::string, std::string> axes_of(const grid::WorkloadText& recipe, const grid::TableText& table) {
  const grid::Scope scope;
  std::map<std::string, std::string> out;
  for (const grid::RowText& row : table) {
    if (row.cases.empty() || !row.cases.back().value) continue;
    std::string text = row.cases.back().value->text;
    if (text.size() < 3 || text.front() != '{' || text.back() != '}') continue;
    text = text.substr(1, text.size() - 2);
    const auto derived = std::ranges::find(recipe.derived, text, &grid::RowText::key);
    if (derived != recipe.derived.end() && !derived->cases.empty() && derived->cases.back().value)
      text = derived->cases.back().value->text;
    const auto slot = scope.find(text);
    if (slot && scope.is_axis(*slot)) out[row.key] = text;
  }
  return out;
}

// Turns what a recipe knows of `values` (flag or path -> value) into axes; whole numbers alone, and no sum of
// others.
void take_axes(Draft& draft, const std::map<std::string, std::string>& known,
               const std::map<std::string, std::string>& values) {
  for (const auto& [key, axis] : known) {
    const auto value = values.find(key);
    if (value == values.end() || axis == "global_batch_size" || axis == "dp") continue;
    const auto number = number_from(value->second);
    if (number && is_integer(value->second) && *number >= (axis == "zero" ? 0 : 1))
      draft.axes[axis] = value->second;
  }
}

Expected<grid::WorkloadText> built_in(const std::string& name) {
  return grid::read_recipe(*built_in_recipes().find(name), "recipe " + name, built_in_recipes());
}

// "[section]" and "key = value" lines, as torchtitan's files have them: flags of its command line.
std::map<std::string, std::string> flags_of_toml(std::string_view text) {
  std::map<std::string, std::string> out;
  std::string section;
  const auto trimmed = [](std::string_view part) {
    const auto begin = part.find_first_not_of(" \t\r\""), end = part.find_last_not_of(" \t\r\"");
    return begin == std::string_view::npos ? std::string() : std::string(part.substr(begin, end - begin + 1));
  };
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, std::min(end, text.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const auto equals = line.find('='); equals != std::string_view::npos)
      out[fmt::format("--{}.{}", section, trimmed(line.substr(0, equals)))] =
          trimmed(line.substr(equals + 1));
    else if (const auto name = trimmed(line); name.size() > 2 && name.front() == '[' && name.back() == ']')
      section = name.substr(1, name.size() - 2);
  }
  return out;
}

void flatten(const nlohmann::ordered_json& tree, const std::string& path,
             std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : tree.items()) {
    const std::string here = path.empty() ? key : path + "." + key;
    if (value.is_object()) flatten(value, here, out);
    if (value.is_number()) out[here] = value.dump();
  }
}

}  // namespace

Expected<std::string> first_grid_of_recipe(const std::string& recipe) {
  auto named = built_in_recipes().find(recipe);
  std::string text(named.value_or(""));
  if (!named) {
    SWEEP_GET(auto file, read_input(recipe, kMostBytes, Streams::kRefused));
    text = std::move(file.bytes);
  }
  SWEEP_GET(auto read, grid::read_recipe(text, named ? "recipe " + recipe : recipe, built_in_recipes()));
  if (!read.first_grid.empty()) return std::move(read.first_grid);
  Draft draft;
  draft.name = grid_name(recipe), draft.from = "recipe " + recipe;
  draft.recipe = recipe.find('/') == std::string::npos ? "./" + recipe : recipe;
  if (read.script.empty() &&
      std::ranges::any_of(read.command, [](const auto& word) { return word.text == "{script}"; }))
    draft.script = "train.py";
  return draft.text();
}

// The words of a launcher, with `module` (sweep_trial, which reports steps, memory and OOM) before the script.
void add_launcher_words(Draft& draft, std::span<const std::string> words,
                        const std::vector<std::string>& module) {
  std::size_t script = 0;  // place of the program that the launcher starts: a file or the word after -m
  bool other = false;
  for (; script < words.size() && !words[script].ends_with(".py") && !other; ++script)
    other = words[script] == "-m" || words[script] == "--module" || words[script] == "--no_python";
  add_words(draft, words.first(script), draft.command, Whose::kLauncher);
  if (script == words.size()) return;
  if (!other) {
    draft.name = grid_name(words[script]);
    draft.command.insert(draft.command.end(), module.begin(), module.end());
  }
  draft.command.push_back(template_of(words[script]));
  add_words(draft, words.subspan(script + 1), draft.command);
}

// How many of Python's words are options of its own; nullopt: the module cannot go before what it runs, which is a text
// (-c), its input, or nothing, or it ignores PYTHONPATH (-E, -I).
std::optional<std::size_t> options_of_python(std::span<const std::string> words) {
  std::size_t i = 0;
  for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "-m"; ++i) {
    if (words[i] == "-X" || words[i] == "-W" || words[i] == "--check-hash-based-pycs")
      ++i;
    else if (words[i].find_first_of("XW-", 1) != 1 && words[i].find_first_of("cEI", 1) != std::string::npos)
      return std::nullopt;
  }
  return i < words.size() && words[i] != "-" ? std::optional(i) : std::nullopt;
}

// The words of a Python program after `python`.
void add_python_words(Draft& draft, std::span<const std::string> words) {
  const auto options = options_of_python(words);
  if (!options) return add_words(draft, words, draft.command);
  const auto rest = words.subspan(*options);
  for (const std::string& word : words.first(*options)) draft.command.push_back(template_of(word));
  draft.command.insert(draft.command.end(), {"-m", "sweep_trial"});  // reports steps, memory and OOM
  if (!is_option(rest.front())) draft.name = grid_name(rest.front());
  draft.per_node = rest.size() > 1 && rest.front() == "-m" && is_launcher_module(rest[1]);
  if (!draft.per_node) return add_words(draft, rest, draft.command);
  draft.command.insert(draft.command.end(), {"-m", rest[1]});
  add_launcher_words(draft, rest.subspan(2), {});
}

Expected<std::string> first_grid_of_command(std::span<const std::string> words) {
  if (words.empty())
    return fail("there is no command; say it after --, as in `sweep init -- torchrun train.py`");
  Draft draft;
  draft.from = "a command line";
  const std::string program = program_name(words.front());
  const auto rest = words.subspan(1);
  draft.name = program == "python" || program == "python3" ? "my-trainer" : grid_name(program);
  const auto script = program == "torchrun" ? script_of_torchrun(rest, draft) : std::nullopt;
  if (script) {
    draft.recipe = "torchrun";
    draft.script = rest[*script];
    draft.name = grid_name(draft.script);
    add_words(draft, rest.subspan(*script + 1), draft.arguments);
    return finished(draft);
  }
  draft.ranks.clear(), draft.left_out.clear();
  draft.command.push_back(template_of(words.front()));
  const bool python = program.starts_with("python") && !rest.empty();
  draft.per_node = !python;
  if (python)
    add_python_words(draft, rest);
  else if (program == "torchrun" || program == "accelerate" || program == "deepspeed")
    add_launcher_words(draft, rest, {program == "deepspeed" ? "--module" : "-m", "sweep_trial"});
  else
    add_words(draft, rest, draft.command);
  return finished(draft);
}

bool is_config_file(const std::filesystem::path& file) {
  return file.extension() == ".json" || file.extension() == ".toml";
}

Expected<std::string> first_grid_of_config(const std::filesystem::path& file) {
  SWEEP_GET(const auto bytes, read_input(file, kMostBytes, Streams::kRefused));
  Draft draft;
  draft.name = grid_name(file), draft.from = file.filename().string();
  draft.ranks["gpus_per_node"] = "2";
  const bool toml = file.extension() == ".toml";
  draft.recipe = toml ? "torchtitan" : "deepspeed";
  SWEEP_GET(const auto recipe, built_in(draft.recipe));
  if (toml) {
    draft.arguments = {"--job.config_file", template_of(file.string())};
    take_axes(draft, axes_of(recipe, recipe.flags), flags_of_toml(bytes.bytes));
    return draft.text();
  }
  const auto json = nlohmann::ordered_json::parse(bytes.bytes, nullptr, false);
  if (!json.is_object())
    return fail("{}: it is no JSON object, as a DeepSpeed configuration is", file.string());
  std::map<std::string, std::string> values;
  flatten(json, "", values);
  draft.script = "train.py";
  draft.more = fmt::format("  files: {{ds.json: {{from: {}}}}}   # the axes are laid over it\n",
                           quoted(file.string()));
  take_axes(draft, axes_of(recipe, recipe.files.at("ds.json").settings), values);
  return draft.text();
}

}  // namespace sweep::interop
