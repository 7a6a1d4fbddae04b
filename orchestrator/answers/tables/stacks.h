// Where the threads of a rank were when its attempt was given up, out of an attempt's evidence.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace sweep::answers {

struct RankStacks {
  std::string rank;
  // Lines, as `py-spy dump` prints them.
  std::string text;
};
// Of the rank that decides, else of the first that has some. The evidence is not trusted.
std::optional<RankStacks> deciding_stacks(const nlohmann::json& evidence);

}  // namespace sweep::answers
