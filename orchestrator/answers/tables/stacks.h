// Where the threads of a rank were when its attempt was given up, out of an attempt's evidence.
#pragma once
#include <optional>
#include <string>

#include "schema/records.h"

namespace sweep::answers {

struct RankStacks {
  i64 rank = 0;
  // Lines, as `py-spy dump` prints them.
  std::string text;
};
// Those of the rank that decides, else of the first that has some.
std::optional<RankStacks> deciding_stacks(const Evidence&);

}  // namespace sweep::answers
