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

// A program that belongs to this one: beside it, else on the PATH. Where it is at neither, the path beside this one.
std::filesystem::path companion(const std::string& name);

// Error: one of them is not there or cannot be executed.
Expected<void> check_programs(const Programs&);

}  // namespace sweep::launch
