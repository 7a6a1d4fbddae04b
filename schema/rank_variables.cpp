#include "schema/rank_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sweep {
namespace {

using namespace std::string_view_literals;

// Set for every process of a command.
constexpr std::array kOfRanks{
    "RANK"sv,        "LOCAL_RANK"sv,  "WORLD_SIZE"sv,         "LOCAL_WORLD_SIZE"sv, "GROUP_RANK"sv,
    "MASTER_ADDR"sv, "MASTER_PORT"sv, "SWEEP_RESULTS_FILE"sv, "SWEEP_ATTEMPT"sv,    "CUDA_VISIBLE_DEVICES"sv};

struct Refusal {
  std::string_view name, why;
};
constexpr Refusal kOfStep[] = {
    {"CUDA_DEVICE_ORDER", "sweep sets it, so that GPUs are counted as NVML counts them"},
    {"TORCH_NCCL_RANKS_PER_ROOT", "sweep sets it, so that ranks of any number meet"},
    {"NCCL_DEBUG_FILE", "sweep sets it, and reads there which algorithms and channels were used"},
    {"OMP_NUM_THREADS", "the axis threads says how many there are"},
    {"LD_PRELOAD", "another library in a rank would not be the step that is measured"},
    {"LD_LIBRARY_PATH", "another library in a rank would not be the step that is measured"},
    {"LD_AUDIT", "another library in a rank would not be the step that is measured"}};
// Words of names whose values are no part of a configuration.
constexpr std::array kOfSecrets{"TOKEN"sv,      "SECRET"sv,  "PASSWORD"sv,  "PASSWD"sv,
                                "CREDENTIAL"sv, "API_KEY"sv, "ACCESS_KEY"sv};

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return !name.empty() && letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

tl::unexpected<Error> refused(std::string_view name, const std::string& why) {
  return fail(ErrorKind::kInvalidValue, std::string(name), "env: " + why);
}

}  // namespace

bool is_set_for_ranks(std::string_view variable) {
  return std::ranges::find(kOfRanks, variable) != kOfRanks.end();
}

std::string text_of(const RankVariables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

std::string why_not_for_step(std::string_view variable) {
  if (!is_name(variable)) return fmt::format("'{}' is no name of a variable", variable);
  if (is_set_for_ranks(variable) || variable.starts_with("SWEEP_"))
    return fmt::format("{} is set by sweep for each rank", variable);
  for (const auto& [name, why] : kOfStep)
    if (variable == name) return fmt::format("{}: {}", variable, why);
  for (const auto word : kOfSecrets)
    if (variable.find(word) != std::string_view::npos)
      return fmt::format(
          "{} looks like a secret, and the database keeps the values of `env`; set it where the agent starts",
          variable);
  return "";
}

Expected<RankVariables> rank_variables_from(std::string_view text) {
  RankVariables out;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return out;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    const std::size_t sign = word.find('=');
    const std::string_view name = word.substr(0, sign);
    if (sign == std::string_view::npos || sign + 1 == word.size())
      return refused(name, fmt::format("'{}' is not of the form NAME=VALUE", word));
    if (auto why = why_not_for_step(name); !why.empty()) return refused(name, why);
    const std::string_view value = word.substr(sign + 1);
    if (!std::ranges::all_of(value, [](char c) { return c > ' ' && c <= '~'; }))
      return refused(name, fmt::format("the value of {} has a sign that is no printed one of ASCII", name));
    if (!out.emplace(name, value).second) return refused(name, fmt::format("{} is there twice", name));
  }
}

bool change_the_allocator(const RankVariables& variables) {
  return variables.contains("PYTORCH_CUDA_ALLOC_CONF") || variables.contains("PYTORCH_ALLOC_CONF") ||
         variables.contains("PYTORCH_NO_CUDA_MEMORY_CACHING");
}

}  // namespace sweep
