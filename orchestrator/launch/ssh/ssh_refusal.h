// Why ssh did not reach a host, from what it said: one sentence with the way out. Pure text.
#pragma once
#include <string>
#include <string_view>

namespace sweep::launch {

// `host`: the words a person writes behind `ssh` to try the same (by_hand).
std::string why_ssh_failed(const std::string& host, std::string_view said);

}  // namespace sweep::launch
