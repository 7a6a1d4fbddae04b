// The programs that an allocation starts.
#pragma once
#include <filesystem>
#include <string>

#include "base/expected.h"

namespace sweep::launch {

struct Programs {
  // Absolute, at the same path on every node. rank: empty where every trial runs a command.
  std::filesystem::path agent, rank;
  bool zygote = true;
  std::string screen{};  // value of the agent's --screen; empty: nodes are not screened
};

// Error: one of them is not there or cannot be executed.
Expected<void> check_programs(const Programs&);

}  // namespace sweep::launch
