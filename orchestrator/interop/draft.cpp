#include "orchestrator/interop/draft.h"

#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "base/integers.h"
#include "base/number_in.h"
#include "orchestrator/grid/own_axes.h"
#include "orchestrator/grid/workload_text.h"
#include "orchestrator/interop/known_options.h"

namespace sweep::interop {
namespace {

constexpr i64 kLargest = i64{1} << 50;

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

// A word is read again as it was written: 007 is the name of a run.
std::optional<double> number_of_option(const std::string& value) {
  const auto digits = value.find_first_not_of('-');
  const bool leading_zero = digits != std::string::npos && value[digits] == '0' &&
                            digits + 1 < value.size() &&
                            std::isdigit(static_cast<unsigned char>(value[digits + 1])) != 0;
  return leading_zero ? std::nullopt : number_from(value);
}

bool counts_ranks(std::string_view name) {
  return name == "nodes" || name == "gpus_per_node" || name == "world";
}

// An axis of sweep's, or nullopt: none, or another option with another value has become that axis.
std::optional<std::string> known_axis(Draft& draft, const std::string& option, const std::string& value) {
  const auto axis = axis_of_option(option);
  if (!axis) return std::nullopt;
  if (*axis == "total_steps") {
    draft.stops = true;
    if (draft.steps.value_or(value) != value) return std::nullopt;
    draft.steps = value;
  } else if (draft.axes.try_emplace(std::string(*axis), value).first->second != value) {
    return std::nullopt;
  }
  return std::string(*axis);
}

// An axis of the program alone, or nullopt: an option of that name has another value.
std::optional<std::string> own_axis(Draft& draft, const std::string& option, const std::string& value) {
  std::string name = axis_name_from(option);
  if (grid::is_name_of_sweep(name) || grid::is_rank_name(name) || axis_of_option(name)) name = "my_" + name;
  if (draft.own.try_emplace(name, value).first->second != value) return std::nullopt;
  return name;
}

// The name in braces that stands for the value of an option; nullopt: the value stays.
std::optional<std::string> name_for(Draft& draft, const std::string& option, const std::string& value,
                                    Whose whose) {
  const auto number = number_of_option(value);
  const bool positive = number && is_integer(value) && *number >= 1 && *number < 1e6;
  const auto rank = rank_name_of_option(option);
  if (rank && (whose == Whose::kLauncher || !counts_ranks(*rank)) &&
      (positive || !number || *rank == "node")) {
    if (positive && counts_ranks(*rank))
      draft.ranks[*rank == "world" ? "gpus_per_node" : std::string(*rank)] = value;
    return std::string(*rank);
  }
  if (!number || whose == Whose::kLauncher) return std::nullopt;
  if (positive || axis_of_option(option) == "zero")
    if (auto axis = known_axis(draft, option, value)) return axis;
  if (is_integer(value) && (*number <= -kLargest || *number >= kLargest)) return std::nullopt;
  return own_axis(draft, option, value);
}

// Puts an option and its value among the words: a name in braces where it is known.
void add_option(Draft& draft, std::vector<std::string>& to, const std::string& option,
                const std::string& value, bool joined, Whose whose) {
  const auto name = name_for(draft, option, value, whose);
  const std::string shown = name ? fmt::format("{{{}}}", *name) : template_of(value);
  if (joined) {
    to.push_back(template_of(option) + "=" + shown);
  } else {
    to.push_back(template_of(option));
    to.push_back(shown);
  }
}

}  // namespace

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

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !number_from(word);
}

std::string Draft::text() const {
  std::string out = fmt::format(
      "# Made by `sweep init` from {}. `sweep plan` shows its trials, `sweep run` runs them.\n", from);
  if (!left_out.empty())
    out += fmt::format("# Left out, as the recipe writes the launcher's options:{}\n", left_out);
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

void add_words(Draft& draft, std::span<const std::string> words, std::vector<std::string>& to, Whose whose) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (is_option(words[i]) && equals != std::string::npos) {
      add_option(draft, to, words[i].substr(0, equals), words[i].substr(equals + 1), true, whose);
    } else if (is_option(words[i]) && i + 1 < words.size() && !is_option(words[i + 1])) {
      add_option(draft, to, words[i], words[i + 1], false, whose);
      ++i;
    } else {
      to.push_back(template_of(words[i]));
    }
  }
}

}  // namespace sweep::interop
