// The programs that an allocation starts, and what one of them prints.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

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

// Runs a program for its standard output. Error: it cannot be started, does not end in time (it is killed), ends
// with another code than 0, or says too much.
Expected<std::string> capture(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                              double timeout_s = 30, std::size_t max_bytes = 1 << 20);

}  // namespace sweep::launch
