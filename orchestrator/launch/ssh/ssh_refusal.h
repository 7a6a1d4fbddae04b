// Why ssh did not reach a host, from what it said: one sentence with the way out. Pure text.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace sweep::launch {

// `host`: the words a person writes behind `ssh` to try the same (by_hand). Absent: the cause is not one of those known.
std::optional<std::string> explain_ssh_failure(const std::string& host, std::string_view said);
// The same, or else what ssh said last.
std::string why_ssh_failed(const std::string& host, std::string_view said);

}  // namespace sweep::launch
