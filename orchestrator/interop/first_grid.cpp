#include "orchestrator/interop/first_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/input_file.h"
#include "base/number_in.h"
#include "orchestrator/grid/config_text.h"
#include "orchestrator/grid/workload_text.h"
#include "orchestrator/interop/known_options.h"
#include "orchestrator/interop/recipes.h"

namespace sweep::interop {
namespace {

constexpr std::size_t kMostBytes = 1u << 20;
constexpr i64 kLargest = i64{1} << 50;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string template_of(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '{' || c == '}' ? 2 : 1, c);
  return out;
}

std::optional<double> number_from(const std::string& text) {
  const auto value = number_in<double>(text);
  return value && *value > -1e15 && *value < 1e15 ? value : std::nullopt;
}

bool is_integer(const std::string& text) {
  return text.find_first_not_of("-0123456789") == std::string::npos;
}

// A grid as it is put together, and how it is written.
struct Draft {
  std::string name, from, recipe, script;
  std::vector<std::string> command, arguments;
  bool per_node = false, stops = false;      // stops: it is told how many steps to take
  std::string more;                          // further lines of the workload
  std::map<std::string, std::string> axes;   // sweep's own: name -> value
  std::map<std::string, std::string> own;    // arguments of the program alone
  std::map<std::string, std::string> ranks;  // nodes, gpus_per_node

  std::string text() const;
};

std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + quoted(word);
  return "[" + out + "]";
}

// Values to try first: twice a batch, and what is there.
std::string first_values(const std::string& value) {
  if (const auto number = number_from(value))
    return fmt::format("[{}, {}]", value, static_cast<i64>(*number) * 2);
  return fmt::format("[{}]", value);
}

std::string Draft::text() const {
  std::string out = fmt::format(
      "# Made by `sweep init` from {}. `sweep plan` shows its trials, `sweep run` runs them.\n", from);
  out += fmt::format("name: {}\nquestion: Which values are fastest?\nworkload:\n", name);
  if (!recipe.empty()) out += fmt::format("  recipe: {}\n", recipe);
  if (!script.empty()) out += fmt::format("  script: {}\n", quoted(script));
  if (!command.empty()) out += fmt::format("  command: {}\n", list_of(command));
  if (!arguments.empty()) out += fmt::format("  arguments: {}\n", list_of(arguments));
  if (per_node) out += "  processes: per_node   # it starts the processes of a node itself\n";
  out += more;
  if (!own.empty())
    out += "  axes:                 # options that only this program knows; give them values under grid\n";
  for (const auto& [axis, value] : own)
    out += fmt::format("    {}: {{type: {}, default: {}}}\n", axis, is_integer(value) ? "integer" : "number",
                       value);
  out += "base:\n  hardware: cpu         # `sweep hardware` lists GPUs\n";
  for (const auto& [axis, value] : ranks) out += fmt::format("  {}: {}\n", axis, value);
  for (const auto& [axis, value] : axes)
    if (axis != "micro_batch_size") out += fmt::format("  {}: {}\n", axis, value);
  const auto batch = axes.find("micro_batch_size");
  const bool swept = batch != axes.end();
  out += fmt::format("{}grid:                   # each combination is a trial\n", swept ? "" : "# ");
  if (swept) out += fmt::format("  micro_batch_size: {}\n", first_values(batch->second));
  for (const auto& [axis, value] : own)
    out += fmt::format("{}{}: [{}]\n", swept ? "  # " : "#   ", axis, value);
  if (!swept && own.empty()) out += "#   micro_batch_size: [1, 2]\n";
  out += "measure: {warmup_steps: 2, steps: 6}\n# limits: {hang_seconds: 300}\n";
  return out;
}

// Puts an option and its value among the words: a name in braces where it is known.
void add_option(Draft& draft, std::vector<std::string>& to, const std::string& option,
                const std::string& value, bool joined) {
  std::string shown = template_of(value);
  const auto number = number_from(value);
  const bool positive = number && is_integer(value) && *number >= 1 && *number < 1e6;
  if (const auto rank = rank_name_of_option(option); rank && (positive || !number || *rank == "node")) {
    shown = fmt::format("{{{}}}", *rank);
    if (positive && (*rank == "nodes" || *rank == "gpus_per_node")) draft.ranks[std::string(*rank)] = value;
    if (positive && *rank == "world") draft.ranks["gpus_per_node"] = value;
  } else if (const auto axis = axis_of_option(option); axis && (positive || (*axis == "zero" && number))) {
    shown = fmt::format("{{{}}}", *axis);
    draft.stops = draft.stops || *axis == "total_steps";
    if (*axis != "total_steps") draft.axes[std::string(*axis)] = value;
  } else if (number && (!is_integer(value) || (*number > -kLargest && *number < kLargest))) {
    std::string name = axis_name_from(option);
    if (grid::Scope().find(name) || grid::is_rank_name(name) || axis_of_option(name)) name = "my_" + name;
    if (!draft.own.contains(name)) {
      draft.own[name] = value;
      shown = fmt::format("{{{}}}", name);
    }
  }
  if (joined) {
    to.push_back(template_of(option) + "=" + shown);
  } else {
    to.push_back(template_of(option));
    to.push_back(shown);
  }
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !number_from(word);
}

void add_words(Draft& draft, std::span<const std::string> words, std::vector<std::string>& to) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (is_option(words[i]) && equals != std::string::npos) {
      add_option(draft, to, words[i].substr(0, equals), words[i].substr(equals + 1), true);
    } else if (is_option(words[i]) && i + 1 < words.size() && !is_option(words[i + 1])) {
      add_option(draft, to, words[i], words[i + 1], false);
      ++i;
    } else {
      to.push_back(template_of(words[i]));
    }
  }
}

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
    if (name == "standalone" || words[i].find('=') != std::string::npos) {
      if (name != "standalone") add_words(draft, words.subspan(i, 1), ignored);
      continue;
    }
    if (i + 1 < words.size()) add_words(draft, words.subspan(i, 2), ignored);
    ++i;
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
    auto file = read_input(recipe, kMostBytes, Streams::kRefused);
    if (!file) return tl::unexpected(file.error());
    text = std::move(file->bytes);
  }
  auto read = grid::read_recipe(text, named ? "recipe " + recipe : recipe, built_in_recipes());
  if (!read) return tl::unexpected(read.error());
  if (!read->first_grid.empty()) return std::move(read->first_grid);
  Draft draft;
  draft.name = grid_name(recipe), draft.from = "recipe " + recipe;
  draft.recipe = recipe.find('/') == std::string::npos ? "./" + recipe : recipe;
  if (read->script.empty() &&
      std::ranges::any_of(read->command, [](const auto& word) { return word.text == "{script}"; }))
    draft.script = "train.py";
  return draft.text();
}

// The words of accelerate or deepspeed, with sweep_trial before the script: it reports steps, memory and OOM.
void add_launcher_words(Draft& draft, std::span<const std::string> words, const std::string& module_option) {
  const auto script = static_cast<std::size_t>(
      std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); }) -
      words.begin());
  const auto options = words.first(script);
  const bool other = std::ranges::any_of(options, [](const std::string& word) {
    return word == "-m" || word == "--module" || word == "--no_python";
  });
  if (script == words.size() || other) return add_words(draft, words, draft.command);
  draft.name = grid_name(words[script]);
  add_words(draft, options, draft.command);
  draft.command.insert(draft.command.end(), {module_option, "sweep_trial", template_of(words[script])});
  add_words(draft, words.subspan(script + 1), draft.command);
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
  draft.ranks.clear(), draft.own.clear();
  draft.command.push_back(template_of(words.front()));
  const bool python = program.starts_with("python") && !rest.empty();
  if (python)
    draft.command.insert(draft.command.end(), {"-m", "sweep_trial"});  // reports steps, memory and OOM
  if (python && !is_option(rest.front())) draft.name = grid_name(rest.front());
  if (program == "accelerate" || program == "deepspeed")
    add_launcher_words(draft, rest, program == "accelerate" ? "-m" : "--module");
  else
    add_words(draft, rest, draft.command);
  draft.per_node = !python || std::ranges::find(rest, "torch.distributed.run") != rest.end();
  return finished(draft);
}

bool is_config_file(const std::filesystem::path& file) {
  return file.extension() == ".json" || file.extension() == ".toml";
}

Expected<std::string> first_grid_of_config(const std::filesystem::path& file) {
  const auto bytes = read_input(file, kMostBytes, Streams::kRefused);
  if (!bytes) return tl::unexpected(bytes.error());
  Draft draft;
  draft.name = grid_name(file), draft.from = file.filename().string();
  draft.ranks["gpus_per_node"] = "2";
  const bool toml = file.extension() == ".toml";
  draft.recipe = toml ? "torchtitan" : "deepspeed";
  const auto recipe = built_in(draft.recipe);
  if (!recipe) return tl::unexpected(recipe.error());
  if (toml) {
    draft.arguments = {"--job.config_file", template_of(file.string())};
    take_axes(draft, axes_of(*recipe, recipe->flags), flags_of_toml(bytes->bytes));
    return draft.text();
  }
  const auto json = nlohmann::ordered_json::parse(bytes->bytes, nullptr, false);
  if (!json.is_object())
    return fail(fmt::format("{}: it is no JSON object, as a DeepSpeed configuration is", file.string()));
  std::map<std::string, std::string> values;
  flatten(json, "", values);
  draft.script = "train.py";
  draft.more = fmt::format("  files: {{ds.json: {{from: {}}}}}   # the axes are laid over it\n",
                           quoted(file.string()));
  take_axes(draft, axes_of(*recipe, recipe->files.at("ds.json").settings), values);
  return draft.text();
}

}  // namespace sweep::interop
