// The programs that an allocation starts.
#pragma once
#include <filesystem>
#include <string>

namespace sweep::launch {

struct Programs {
  std::filesystem::path agent, rank;  // absolute, at the same path on every node
  bool zygote = true;
  std::string screen{};  // as the agent's --screen; empty: no look at the nodes
};

}  // namespace sweep::launch
